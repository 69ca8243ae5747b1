"""``import rankframe.pandas`` registers ``pdf.ranking`` on pandas.DataFrame."""

import pandas as pd

from rankframe._namespace import attach

attach("ranking", pd.DataFrame, pd.api.extensions.register_dataframe_accessor)
