//! What was measured on the public Philly log (82,247 jobs; Jeon et al., ATC '19), as constants.
//!
//! Sizes, groups, durations, bursts and gaps are fitted to the log; the tests compare them where
//! the log is at hand. The log has no users, stated durations, values or deadlines: those are
//! assumptions, and say so.

use super::curve::Curve;

/// The sizes of jobs in GPUs.
pub(super) const SIZES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Jobs of each size in each group, and (assumed) how many users the group has.
pub(super) const GROUPS: [([u64; 8], u32); 11] = [
    ([40_841, 50, 144, 191, 0, 0, 0, 0], 60),
    ([14_607, 1_415, 40, 10, 19, 0, 0, 0], 30),
    ([9_054, 37, 396, 455, 11, 0, 0, 0], 40),
    ([7_237, 3, 72, 51, 60, 0, 0, 0], 30),
    ([1_571, 33, 330, 0, 0, 0, 0, 0], 20),
    ([597, 109, 266, 420, 97, 13, 6, 3], 24),
    ([1_090, 164, 181, 0, 0, 0, 0, 0], 12),
    ([1_137, 0, 0, 0, 0, 0, 0, 0], 8),
    ([204, 0, 329, 179, 11, 0, 0, 0], 16),
    ([64, 4, 10, 293, 0, 51, 0, 0], 12),
    ([215, 3, 102, 43, 8, 3, 0, 0], 10),
];

/// How many alike jobs follow each other, of one GPU.
const RUN_SMALL: Curve = Curve(&[
    (0, 1),
    (770, 1),
    (900, 3),
    (950, 6),
    (970, 12),
    (980, 25),
    (990, 88),
    (995, 220),
    (999, 535),
    (1000, 1063),
]);

/// The same of several GPUs.
const RUN_WIDE: Curve = Curve(&[(0, 1), (800, 1), (900, 2), (950, 3), (990, 7), (1000, 20)]);

/// How many alike jobs follow each other, by the index of their size.
pub(super) fn run(size: usize) -> &'static Curve {
    if size == 0 { &RUN_SMALL } else { &RUN_WIDE }
}

/// Seconds from one job to the next of the same run.
pub(super) const GAP_WITHIN: Curve = Curve(&[
    (0, 0),
    (100, 0),
    (250, 2),
    (500, 5),
    (750, 12),
    (900, 28),
    (950, 56),
    (990, 188),
    (1000, 299),
]);

/// Seconds from one run to the next.
pub(super) const GAP_BETWEEN: Curve = Curve(&[
    (0, 0),
    (50, 5),
    (100, 17),
    (250, 86),
    (500, 270),
    (750, 570),
    (900, 600),
    (980, 800),
    (990, 1021),
    (999, 2562),
    (1000, 9842),
]);

const DURATION_1: Curve = Curve(&[
    (0, 1),
    (10, 32),
    (30, 46),
    (50, 53),
    (100, 62),
    (150, 69),
    (200, 77),
    (250, 130),
    (300, 222),
    (350, 399),
    (400, 609),
    (450, 874),
    (500, 1147),
    (600, 1759),
    (700, 2475),
    (750, 2724),
    (800, 3783),
    (850, 5353),
    (900, 8499),
    (930, 12_203),
    (950, 18_626),
    (970, 42_864),
    (980, 65_990),
    (990, 128_481),
    (995, 250_115),
    (998, 444_416),
    (999, 688_516),
    (1000, 2_601_226),
]);

const DURATION_2: Curve = Curve(&[
    (0, 2),
    (10, 5),
    (50, 9),
    (100, 11),
    (200, 14),
    (300, 17),
    (500, 21),
    (600, 24),
    (700, 32),
    (750, 75),
    (800, 136),
    (850, 22_165),
    (900, 69_083),
    (930, 136_198),
    (950, 200_460),
    (970, 269_690),
    (990, 526_313),
    (998, 1_399_002),
    (1000, 2_582_803),
]);

const DURATION_4: Curve = Curve(&[
    (0, 9),
    (10, 37),
    (50, 80),
    (100, 139),
    (150, 185),
    (200, 437),
    (250, 786),
    (300, 1829),
    (350, 4487),
    (400, 7514),
    (500, 17_382),
    (600, 36_220),
    (700, 78_619),
    (800, 104_628),
    (850, 149_337),
    (900, 183_527),
    (930, 200_915),
    (950, 266_295),
    (970, 438_264),
    (990, 794_178),
    (998, 2_059_338),
    (1000, 2_750_674),
]);

const DURATION_8: Curve = Curve(&[
    (0, 9),
    (10, 35),
    (50, 84),
    (100, 201),
    (150, 412),
    (200, 638),
    (250, 1255),
    (300, 3213),
    (350, 5808),
    (400, 11_277),
    (500, 23_392),
    (600, 57_418),
    (700, 126_228),
    (750, 164_891),
    (800, 189_460),
    (850, 226_552),
    (900, 298_230),
    (930, 371_715),
    (950, 446_977),
    (970, 590_523),
    (990, 928_157),
    (998, 2_014_843),
    (1000, 2_214_025),
]);

/// How long jobs run, in seconds, by the index of their size.
pub(super) fn duration(size: usize) -> &'static Curve {
    match size {
        0 => &DURATION_1,
        1 => &DURATION_2,
        2 => &DURATION_4,
        _ => &DURATION_8,
    }
}

/// Of two jobs that follow each other in a run, this many thousandths differ by a share of at
/// most `NEAR`, and this many more by at most `NEARBY`; the rest have nothing in common.
pub(super) const ALIKE: u64 = 600;
pub(super) const NEAR: u64 = 15;
pub(super) const SIMILAR: u64 = 250;
pub(super) const NEARBY: u64 = 100;

/// After so many jobs of a run its owner tries something else (assumed).
pub(super) const TRIES: u64 = 12;

/// How jobs end, in thousandths: completed, failed, and the rest cancelled (ATC '19, table 6).
pub(super) const COMPLETED: u64 = 693;
pub(super) const FAILED: u64 = 172;

/// By how much users over-state durations, in percent (assumed): each has a habit.
pub(super) const HABITS: [u64; 10] = [105, 120, 150, 150, 200, 200, 300, 400, 600, 1000];

/// What users who state durations in round numbers choose from, in minutes (assumed).
pub(super) const ROUND_MINUTES: [u64; 13] =
    [10, 30, 60, 120, 240, 480, 1440, 2880, 5760, 10_080, 20_160, 40_320, 80_640];

/// What a GPU-hour is worth, in thousandths of a credit (assumed): most a little, few a lot.
pub(super) const DENSITY: Curve = Curve(&[
    (0, 200),
    (100, 400),
    (250, 700),
    (500, 1000),
    (750, 2000),
    (900, 5000),
    (970, 12_000),
    (990, 25_000),
    (999, 100_000),
    (1000, 400_000),
]);
