//! Whetstone, double precision (Curnow and Wichmann, Computer Journal 19(1), 1976; the modules and counts of Painter's
//! C version of 1998): what UnixBench calls whetstone-double.

use std::hint::black_box;

use super::pass::{Pass, Passed};
use crate::failure::Failure;

const T: f64 = 0.499975;
const T1: f64 = 0.50025;
const T2: f64 = 2.0;

/// The count is MWIPS itself: a loop is 0.1 million Whetstone instructions.
pub fn run(pass: &Pass) -> Result<Passed, Failure> {
    let mut last = 0.0;
    let loops = pass.count(|| {
        last = one_loop(black_box(1));
        Ok(())
    })?;
    if (last - KNOWN).abs() > 1e-9 {
        return Err(Failure::wrong(format!(
            "Whetstone's last value is {last}, not {KNOWN}"
        )));
    }
    Ok(Passed {
        count: 0.1 * loops.count / loops.seconds,
        seconds: loops.seconds,
    })
}

/// What module 11 leaves of 0.75 after 93 rounds: worked out once, with another C library's exp, log and sqrt.
const KNOWN: f64 = 0.759_865_144_888_246_4;

/// The modules, with the original's counts times `size`. Returns a value that depends on the last.
#[inline(never)]
fn one_loop(size: usize) -> f64 {
    let mut e = [1.0, -1.0, -1.0, -1.0];
    for _ in 0..12 * size {
        elements(&mut e);
    }
    for _ in 0..14 * size {
        array_as_parameter(black_box(&mut e));
    }
    black_box(conditional_jumps(345 * size));
    integers(&mut e, 210 * size);
    black_box(&e);
    black_box(trigonometry(32 * size));
    let mut z = 1.0;
    for _ in 0..899 * size {
        procedure(black_box(1.0), black_box(1.0), &mut z);
    }
    black_box(z);
    let mut e = [1.0, 2.0, 3.0, 0.0];
    for _ in 0..616 * size {
        references(black_box(&mut e));
    }
    standard_functions(93 * size)
}

#[inline(always)]
fn elements(e: &mut [f64; 4]) {
    e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
    e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
    e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
    e[3] = (-e[0] + e[1] + e[2] + e[3]) * T;
}

#[inline(never)]
fn array_as_parameter(e: &mut [f64; 4]) {
    for _ in 0..6 {
        e[0] = (e[0] + e[1] + e[2] - e[3]) * T;
        e[1] = (e[0] + e[1] - e[2] + e[3]) * T;
        e[2] = (e[0] - e[1] + e[2] + e[3]) * T;
        e[3] = (-e[0] + e[1] + e[2] + e[3]) / T2;
    }
}

fn conditional_jumps(count: usize) -> i32 {
    let mut j = 1;
    for _ in 0..count {
        j = if black_box(j) == 1 { 2 } else { 3 };
        j = if black_box(j) > 2 { 0 } else { 1 };
        j = if black_box(j) < 1 { 1 } else { 0 };
    }
    j
}

fn integers(e: &mut [f64; 4], count: usize) {
    let (mut j, mut k, mut l) = (black_box(1i32), black_box(2), black_box(3));
    for _ in 0..count {
        j = j * (k - j) * (l - k);
        k = l * k - (l - j) * k;
        l = (l - k) * (k + j);
        e[(l - 2) as usize] = f64::from(j + k + l);
        e[(k - 2) as usize] = f64::from(j * k * l);
    }
}

fn trigonometry(count: usize) -> f64 {
    let (mut x, mut y) = (0.5f64, 0.5f64);
    for _ in 0..count {
        x = T * (T2 * x.sin() * x.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
        y = T * (T2 * y.sin() * y.cos() / ((x + y).cos() + (x - y).cos() - 1.0)).atan();
    }
    x + y
}

#[inline(never)]
fn procedure(x: f64, y: f64, z: &mut f64) {
    let x1 = T * (x + y);
    let y1 = T * (x1 + y);
    *z = (x1 + y1) / T2;
}

#[inline(never)]
fn references(e: &mut [f64; 4]) {
    e[0] = e[1];
    e[1] = e[2];
    e[2] = e[0];
}

fn standard_functions(count: usize) -> f64 {
    let mut x = black_box(0.75f64);
    for _ in 0..count {
        x = (x.ln() / T1).exp().sqrt();
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_is_the_known_one() {
        assert!((one_loop(1) - KNOWN).abs() < 1e-9, "{}", one_loop(1));
    }

    #[test]
    fn the_integers_stay_in_the_array() {
        let mut e = [0.0; 4];
        integers(&mut e, 210);
        assert_eq!(e[1], 6.0);
    }
}
