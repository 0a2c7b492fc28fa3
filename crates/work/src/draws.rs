//! Random numbers that are the same each time: from a seed, by published generators.

/// xorshift64 (Marsaglia 2003), started from a seed that SplitMix64 has spread over all bits.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// Seeds that are near each other give numbers that are not.
    pub fn new(seed: u64) -> Self {
        // SplitMix64 (Steele, Lea, Flood 2014). Zero is the one state that xorshift never leaves.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A number from 0 up to, but not, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Zipf's law: the thing of rank k, from 1, is asked for as often as 1/k^exponent says.
pub struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    /// Over `things` things, which are not none. An exponent of 0 makes all equally popular.
    pub fn new(things: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let mut cumulated: Vec<f64> = (1..=things)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        for one in &mut cumulated {
            *one /= sum;
        }
        Self { cumulated }
    }

    /// The number of one thing, from 0, the most popular.
    pub fn draw(&self, random: &mut Random) -> usize {
        let at = random.unit();
        let found = self.cumulated.partition_point(|sum| *sum <= at);
        found.min(self.cumulated.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_the_same_numbers_and_the_next_gives_others() {
        let first: Vec<u64> = (0..9)
            .map(|_| 0)
            .scan(Random::new(1), |random, _| Some(random.next()))
            .collect();
        let again: Vec<u64> = (0..9)
            .map(|_| 0)
            .scan(Random::new(1), |random, _| Some(random.next()))
            .collect();
        assert_eq!(first, again);
        assert_ne!(first[0], Random::new(2).next());
    }

    #[test]
    fn a_popular_thing_is_drawn_as_often_as_the_law_says() {
        let (law, mut random) = (Zipf::new(100, 0.8), Random::new(7));
        let mut drawn = [0_u32; 100];
        for _ in 0..100_000 {
            drawn[law.draw(&mut random)] += 1;
        }
        let ratio = f64::from(drawn[0]) / f64::from(drawn[9]);
        assert!((ratio / 10_f64.powf(0.8) - 1.0).abs() < 0.1, "{ratio}");
        assert!(drawn.iter().all(|count| *count > 0));
    }

    #[test]
    fn without_an_exponent_all_are_equal() {
        let (law, mut random) = (Zipf::new(10, 0.0), Random::new(7));
        let mut drawn = [0_u32; 10];
        for _ in 0..10_000 {
            drawn[law.draw(&mut random)] += 1;
        }
        assert!(
            drawn.iter().all(|count| (850..1150).contains(count)),
            "{drawn:?}"
        );
    }
}
