"""Sizes at which a call takes another road, and what was measured; no other module has one.

A share of the time is that of the other road. ``python -m benchmarks.paths`` measures again what
kept plans and engines give; it was last run in November 2026.
"""

# Eager calls. Up to so many rows the in-memory engine runs them: 1,000 rows take 0.5 to 0.7 of the
# streaming engine's time, 10,000 take 0.7, 50,000 take 0.9, and 100,000 as long.
ROWS_IN_MEMORY = 50_000
# Up to so many, the plan is run as written: 100 to 2,000 rows take 0.85 of the time with the
# optimizer, 3,000 in groups 1.1.
ROWS_UNOPTIMIZED = 2_000
# Up to so many, the plan of an equal call is kept and run as written, without bounds of ids: 100
# to 20,000 rows take half of the time, 30,000 take 0.7. With groups, parts run twice.
ROWS_KEPT, ROWS_KEPT_IN_GROUPS = 50_000, 5_000
PLANS_KEPT = 64
# Up to so many, all groups of the truth are joined at once; with 3,400, both roads take as long.
ROWS_JOINED_AT_ONCE = 5_000
# A product of groups and truth with more than so many times the rows of both tables is warned of.
TIMES_IN_PRODUCT = 50

# Facts of tables. So many first rows nearly always show that two tables share ids, or that a table
# is not in rank order; if they do not, all are read.
FIRST_ROWS = 10_000
# From so many rows on, in lists of at most so many items, neighbors are compared to find
# duplicates: 1 M rows in lists of 10 take 0.25 of the time of counting, in lists of 27 0.3.
ROWS_COMPARED, ITEMS_COMPARED = 50_000, 64
# So many gains or discounts are a chain of conditions, which streams; a longer one is slow, and
# looked up.
WEIGHTS_IN_CHAIN = 100

# Matrices of scores: cells of a slice, groups of columns at the least, cells of a row per item of
# its list that are sorted at once, and threads, each of which holds some slices.
CELLS_OF_MATRIX, GROUPS_OF_COLUMNS, CELLS_PER_ITEM, THREADS = 2**19, 2**9, 4, 8
# A float holds every integer up to this one.
WHOLE = 2**53
# Bytes of a file that are read at a time.
BYTES_READ = 2**22

# Distances of items: sums that stay in the processor's cache, and values with a column each.
CELLS_OF_DISTANCES, VALUES_AS_COLUMNS = 2**16, 64
# Coverage: groups of users that one frame leaves out for the jackknife.
GROUPS_LEFT_OUT = 50

# Resampling: differences of pairs that are tested together, by resampling or else, cells of random
# draws or signs, which take at most 16 bytes each (67 MB) for any number of resamples, and permuted
# values of segments, which are in memory at a time.
CELLS_RESAMPLED, CELLS_TESTED, CELLS_RANDOM, CELLS_PERMUTED = 2**24, 2**20, 2**22, 2**18
# Counters of so many drawn users stay in the cache: to count 20,000 users takes 0.35 of the time.
CELLS_COUNTED = 2**16
# More values to permute take too long: 10,000 users with 10,000 resamples take a few seconds. So
# many permutations are the fewest.
VALUES_PERMUTED, PERMUTATIONS = 10**8, 999
# A gate simulates equal systems for so many undecided rows: each takes 15 to 45 ms.
ROWS_SIMULATED = 20

# Spark: rows of a batch that is sent, and judgments of a partition that evaluates them.
ROWS_OF_BATCH, JUDGMENTS_OF_PARTITION = 2**16, 250_000

# Meter: batches whose sums are added up at once; one by one, each takes 1 ms longer.
BATCHES_ADDED = 64
