//! Numbers drawn from a seed: the same seed, the same numbers.

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
pub struct Draws(u64);

impl Draws {
    /// From a seed; every seed is a good one, 0 too.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number below `bound`, which is not 0 and small: what is left of evenness is lost below 2^-32.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut draws = Draws::new(1_234_567);
        let first = [(); 3].map(|()| draws.bits());
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn every_number_below_the_bound_comes() {
        let mut seen = [0; 4];
        let mut draws = Draws::new(0);
        (0..4000).for_each(|_| seen[draws.below(4) as usize] += 1);
        assert!(seen.iter().all(|&times| times > 900), "{seen:?}");
        assert_eq!(draws.below(1), 0);
    }
}
