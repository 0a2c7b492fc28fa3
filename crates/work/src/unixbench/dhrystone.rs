//! Dhrystone 2.1 (Weicker, SIGPLAN Notices 23(8), 1988), the register version: what UnixBench calls dhry2reg.
//!
//! The procedures keep the names and the numbers of the original, so that they can be read beside it. The values that
//! the original prints 'should be' are checked at the end of every pass.

use std::hint::black_box;

use super::pass::{Pass, Passed};
use crate::failure::Failure;

/// The original has a fifth, which no run comes to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Ident {
    #[default]
    One,
    Two,
    Three,
    Four,
}

const FIRST: &[u8; 30] = b"DHRYSTONE PROGRAM, 1'ST STRING";
const SECOND: &[u8; 30] = b"DHRYSTONE PROGRAM, 2'ND STRING";
const THIRD: &[u8; 30] = b"DHRYSTONE PROGRAM, 3'RD STRING";
const SOME: &[u8; 30] = b"DHRYSTONE PROGRAM, SOME STRING";

#[derive(Clone)]
struct Record {
    discriminant: Ident,
    enum_comp: Ident,
    int_comp: i32,
    text: [u8; 30],
}

/// The original's global variables. `glob` points to one record, whose `Ptr_Comp` is `next`.
struct Globals {
    glob: Record,
    next: Record,
    int_glob: i32,
    bool_glob: bool,
    ch_1: u8,
    ch_2: u8,
    arr_1: [i32; 50],
    arr_2: Vec<[i32; 50]>,
}

/// The original's local variables of `main` that it prints.
#[derive(Default, PartialEq, Debug)]
struct Locals {
    int_1: i32,
    int_2: i32,
    int_3: i32,
    enum_loc: Ident,
}

pub fn run(pass: &Pass) -> Result<Passed, Failure> {
    let mut globals = Globals::new();
    let mut locals = Locals::default();
    let mut runs = 0;
    let passed = pass.count(|| {
        runs += 1;
        locals = globals.one(black_box(runs));
        Ok(())
    })?;
    globals.check(&locals, runs)?;
    Ok(passed)
}

impl Globals {
    fn new() -> Self {
        let record = |text: &[u8; 30]| Record {
            discriminant: Ident::One,
            enum_comp: Ident::Three,
            int_comp: 40,
            text: *text,
        };
        let mut arr_2 = vec![[0; 50]; 50];
        arr_2[8][7] = 10;
        Self {
            glob: record(SOME),
            next: record(SOME),
            int_glob: 0,
            bool_glob: false,
            ch_1: 0,
            ch_2: 0,
            arr_1: [0; 50],
            arr_2,
        }
    }

    /// One run of the loop of `main`.
    fn one(&mut self, run: i32) -> Locals {
        self.proc_5();
        self.proc_4();
        let (mut int_1, mut int_2, mut int_3) = (2, 3, 0);
        let first = *black_box(FIRST);
        let mut second = *black_box(SECOND);
        let mut enum_loc = Ident::Two;
        self.bool_glob = !self.func_2(&first, &second);
        while int_1 < int_2 {
            int_3 = 5 * int_1 - int_2;
            proc_7(int_1, int_2, &mut int_3);
            int_1 += 1;
        }
        self.proc_8(int_1, int_3);
        self.proc_1();
        for index in b'A'..=self.ch_2 {
            if enum_loc == func_1(index, b'C', &mut self.ch_1) {
                proc_6(Ident::One, &mut enum_loc, self.int_glob);
                second = *black_box(THIRD);
                int_2 = run;
                self.int_glob = run;
            }
        }
        black_box(&second);
        int_2 *= int_1;
        int_1 = int_2 / int_3;
        int_2 = 7 * (int_2 - int_3) - int_1;
        self.proc_2(&mut int_1);
        Locals {
            int_1,
            int_2,
            int_3,
            enum_loc,
        }
    }

    #[inline(never)]
    fn proc_1(&mut self) {
        // Ptr_Val_Par is Ptr_Glob; its Ptr_Comp is the next record, whose own is the same again.
        self.next = self.glob.clone();
        self.glob.int_comp = 5;
        self.next.int_comp = self.glob.int_comp;
        self.proc_3_of_next();
        if self.next.discriminant == Ident::One {
            self.next.int_comp = 6;
            let choice = self.glob.enum_comp;
            let int_glob = self.int_glob;
            proc_6(choice, &mut self.next.enum_comp, int_glob);
            let int_comp = self.next.int_comp;
            proc_7(int_comp, 10, &mut self.next.int_comp);
        } else {
            self.glob = self.next.clone();
        }
    }

    /// Proc_3 as Proc_1 calls it: what `next` points to stays, the record that Ptr_Glob points to gets Int_Comp.
    #[inline(never)]
    fn proc_3_of_next(&mut self) {
        proc_7(10, self.int_glob, &mut self.glob.int_comp);
    }

    #[inline(never)]
    fn proc_2(&self, int_par: &mut i32) {
        let mut int_loc = *int_par + 10;
        loop {
            if self.ch_1 == b'A' {
                int_loc -= 1;
                *int_par = int_loc - self.int_glob;
                break;
            }
        }
    }

    #[inline(never)]
    fn proc_4(&mut self) {
        let bool_loc = self.ch_1 == b'A';
        self.bool_glob |= bool_loc;
        self.ch_2 = b'B';
    }

    #[inline(never)]
    fn proc_5(&mut self) {
        self.ch_1 = b'A';
        self.bool_glob = false;
    }

    #[inline(never)]
    fn proc_8(&mut self, int_1: i32, int_2: i32) {
        let loc = (int_1 + 5) as usize;
        self.arr_1[loc] = int_2;
        self.arr_1[loc + 1] = self.arr_1[loc];
        self.arr_1[loc + 30] = loc as i32;
        for index in loc..=loc + 1 {
            self.arr_2[loc][index] = loc as i32;
        }
        self.arr_2[loc][loc - 1] += 1;
        self.arr_2[loc + 20][loc] = self.arr_1[loc];
        self.int_glob = 5;
    }

    #[inline(never)]
    fn func_2(&mut self, first: &[u8; 30], second: &[u8; 30]) -> bool {
        let mut int_loc = 2;
        let mut ch_loc = 0;
        while int_loc <= 2 {
            if func_1(first[int_loc], second[int_loc + 1], &mut self.ch_1) == Ident::One {
                ch_loc = b'A';
                int_loc += 1;
            }
        }
        if (b'W'..b'Z').contains(&ch_loc) {
            int_loc = 7;
        }
        if ch_loc == b'R' {
            return true;
        }
        if black_box(first) > black_box(second) {
            int_loc += 7;
            self.int_glob = int_loc as i32;
            return true;
        }
        false
    }

    fn check(&self, locals: &Locals, runs: i32) -> Result<(), Failure> {
        let wanted = Locals {
            int_1: 5,
            int_2: 13,
            int_3: 7,
            enum_loc: Ident::Two,
        };
        let right = self.int_glob == 5
            && self.bool_glob
            && (self.ch_1, self.ch_2) == (b'A', b'B')
            && self.arr_1[8] == 7
            && self.arr_2[8][7] == runs + 10
            && self.glob.int_comp == 17
            && self.glob.enum_comp == Ident::Three
            && self.next.int_comp == 18
            && self.next.enum_comp == Ident::Two
            && self.glob.text == *SOME
            && *locals == wanted;
        match right {
            true => Ok(()),
            false => Err(Failure::wrong(format!(
                "Dhrystone's final values are not those of the original: {locals:?}"
            ))),
        }
    }
}

#[inline(never)]
fn proc_6(choice: Ident, out: &mut Ident, int_glob: i32) {
    *out = choice;
    if !func_3(choice) {
        *out = Ident::Four;
    }
    match choice {
        Ident::One => *out = Ident::One,
        Ident::Two => {
            *out = if int_glob > 100 {
                Ident::One
            } else {
                Ident::Four
            }
        }
        Ident::Three => *out = Ident::Two,
        Ident::Four => {}
    }
}

#[inline(never)]
fn proc_7(int_1: i32, int_2: i32, out: &mut i32) {
    let int_loc = int_1 + 2;
    *out = int_2 + int_loc;
}

#[inline(never)]
fn func_1(ch_1: u8, ch_2: u8, ch_1_glob: &mut u8) -> Ident {
    let ch_1_loc = ch_1;
    if black_box(ch_1_loc) != ch_2 {
        return Ident::One;
    }
    *ch_1_glob = ch_1_loc;
    Ident::Two
}

#[inline(never)]
fn func_3(choice: Ident) -> bool {
    black_box(choice) == Ident::Three
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_final_values_are_those_that_the_original_prints() {
        for runs in [1, 2, 1000] {
            let mut globals = Globals::new();
            let mut locals = Locals::default();
            for run in 1..=runs {
                locals = globals.one(run);
            }
            globals.check(&locals, runs).expect("the known values");
        }
    }
}
