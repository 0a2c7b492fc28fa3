//! A machine as the model knows it: sizes of its parts and what things cost, read from the plugin's arguments.
//!
//! `ktrial.model.machine_model` writes them; docs/machine-model.md says what each means.

use crate::branches;
use crate::hierarchy::Shapes;
use crate::kinds::{Class, CLASSES};
use crate::paging_caches;
use crate::sampling::Sampling;
use crate::set_associative::Shape;
use crate::translation::{self, Size};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// What things cost, in thousandths of a cycle; caches and translations beyond a hit of the first level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Any instruction.
    pub instruction: u64,
    /// Bytes that a repeated string instruction works on in one cycle.
    pub string_bytes: u64,
    /// A repeated string instruction, whatever its length.
    pub string: u64,
    /// A line that the second level has, the last one, and memory.
    pub levels: [u64; 3],
    /// How much of that a store is held up by, in hundredths.
    pub stores: u64,
    /// A translation that the second level has, and one that the page tables have.
    pub translations: [u64; 2],
    /// Each entry that a walk reads beside that which maps the page, where it is in the first level of data.
    pub walk_level: u64,
    /// A branch that was predicted wrongly.
    pub misprediction: u64,
    /// An interrupt or an exception is taken.
    pub interrupt: u64,
    /// Memory of a device is read or written.
    pub device: u64,
    /// Beside `instruction`, by class.
    pub classes: [u64; CLASSES],
}

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its caches.
    pub caches: Shapes,
    /// Its translation buffers.
    pub translations: translation::Sizes,
    /// Every so-manieth line of a page is modelled; 1: all of them.
    pub sample: u64,
    /// Its paging-structure caches; None: what a walk reads is not modelled, only that there is one.
    pub paging: Option<paging_caches::Sizes>,
    /// Its branch predictor.
    pub branches: branches::Sizes,
    /// What things cost.
    pub costs: Costs,
}

impl Costs {
    /// What so many instructions, and so many bytes of string instructions, cost whatever they are.
    pub fn base(&self, instructions: u64, string_bytes: u64) -> u64 {
        instructions * self.instruction + string_bytes * 1000 / self.string_bytes
    }

    /// What an instruction of this class costs beside that.
    pub fn of(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }
}

/// What an argument of the model begins with.
pub const PREFIX: &str = "model-";

/// Classes by the names that arguments have for their costs.
const CLASS_NAMES: [(&str, Class); CLASSES - 1] = [
    ("divide", Class::Divide),
    ("locked", Class::Locked),
    ("fence", Class::Fence),
    ("pause", Class::Pause),
    ("rdtsc", Class::ReadClock),
    ("cpuid", Class::Cpuid),
    ("rdmsr", Class::ReadMsr),
    ("wrmsr", Class::WriteMsr),
    ("spec-ctrl", Class::SpeculationControl),
    ("ibpb", Class::PredictionBarrier),
    ("l1d-flush", Class::FlushData),
    ("invlpg", Class::InvalidatePage),
    ("mov-cr3", Class::SwitchTables),
    ("mov-cr", Class::ControlRegister),
    ("swapgs", Class::SwapGs),
    ("verw", Class::ClearBuffers),
    ("port", Class::Port),
    ("syscall", Class::SystemCall),
    ("sysret", Class::SystemReturn),
    ("iret", Class::InterruptReturn),
];

/// At most so many entries in a table.
const LARGEST: u64 = 1 << 20;

impl Machine {
    /// Reads arguments without their prefix: all have to be there. The error says what is wrong.
    pub fn read(given: &[(&str, &str)]) -> Result<Self, String> {
        let arguments = Arguments(given);
        let [bits, returns, targets] = arguments.numbers("branches")?;
        let machine = Self {
            caches: Shapes {
                code: arguments.shape("l1i")?,
                data: arguments.shape("l1d")?,
                second: arguments.shape("l2")?,
                last: arguments.shape("llc")?,
                ahead: arguments.number("prefetch")?,
                strides: arguments.number("strides")? as usize,
            },
            translations: translation::Sizes {
                code: arguments.size("itlb")?,
                data: arguments.size("dtlb")?,
                second: arguments.size("stlb")?,
            },
            sample: arguments.number("sample")?,
            paging: arguments.paging()?,
            branches: branches::Sizes {
                history_bits: bits as u32,
                returns: returns as usize,
                targets: targets as usize,
            },
            costs: arguments.costs()?,
        };
        if !(1..=20).contains(&bits)
            || !(1..=LARGEST).contains(&returns)
            || targets == 0
            || targets > LARGEST
            || targets % 4 != 0
        {
            return Err(
                "argument model-branches: 1 to 20 bits, 1 return or more, a multiple of 4 targets"
                    .into(),
            );
        }
        machine.check_sample()?;
        Ok(machine)
    }

    /// Sets stand for others where all caches find them by a line's place in its page.
    fn check_sample(&self) -> Result<(), String> {
        let Shapes {
            code,
            data,
            second,
            last,
            ..
        } = self.caches;
        let found_by_place = |shape: Shape| shape.line == 64 && shape.sets() >= 64;
        let is_none = last.size == last.line;
        let all = [code, data, second].into_iter().all(found_by_place);
        if self.sample == 1
            || (Sampling::fits(self.sample) && all && (is_none || found_by_place(last)))
        {
            return Ok(());
        }
        Err(format!(
            "argument {PREFIX}sample: a divisor of 63, and caches of 64 sets or more with lines of 64 bytes"
        ))
    }
}

struct Arguments<'a>(&'a [(&'a str, &'a str)]);

impl Arguments<'_> {
    fn text(&self, name: &str) -> Result<&str, String> {
        let found = self.0.iter().find(|(given, _)| *given == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("argument {PREFIX}{name} is missing"))
    }

    fn numbers<const COUNT: usize>(&self, name: &str) -> Result<[u64; COUNT], String> {
        let text = self.text(name)?;
        let read: Vec<u64> = text
            .split(':')
            .filter_map(|part| part.parse().ok())
            .collect();
        read.try_into()
            .map_err(|_| format!("argument {PREFIX}{name}={text}: not {COUNT} numbers"))
    }

    fn number(&self, name: &str) -> Result<u64, String> {
        let [only] = self.numbers(name)?;
        Ok(only)
    }

    fn shape(&self, name: &str) -> Result<Shape, String> {
        let text = self.text(name)?;
        Shape::read(text).map_err(|problem| format!("argument {PREFIX}{name}: {problem}"))
    }

    fn size(&self, name: &str) -> Result<Size, String> {
        let [entries, ways] = self.numbers(name)?;
        let size = Size { entries, ways };
        let whole = ways > 0 && entries <= LARGEST && entries % ways == 0;
        if !whole || !(entries / ways).is_power_of_two() {
            return Err(format!(
                "argument {PREFIX}{name}: entries / ways must be a power of two"
            ));
        }
        Ok(size)
    }

    fn paging(&self) -> Result<Option<paging_caches::Sizes>, String> {
        if self.text("paging")? == "none" {
            return Ok(None);
        }
        let sizes: paging_caches::Sizes = self.numbers("paging")?;
        if sizes.iter().any(|&size| size > LARGEST) {
            return Err(format!(
                "argument {PREFIX}paging: at most {LARGEST} entries a level"
            ));
        }
        Ok(Some(sizes))
    }

    fn costs(&self) -> Result<Costs, String> {
        let mut classes = [0; CLASSES];
        for (name, class) in CLASS_NAMES {
            classes[class as usize] = self.number(name)?;
        }
        Ok(Costs {
            instruction: self.number("instruction")?,
            string_bytes: self.number("string-bytes")?.max(1),
            string: self.number("string")?,
            levels: self.numbers("levels")?,
            stores: self.number("stores")?,
            translations: self.numbers("translations")?,
            walk_level: self.number("walk-level")?,
            misprediction: self.number("misprediction")?,
            interrupt: self.number("interrupt")?,
            device: self.number("device")?,
            classes,
        })
    }
}

#[cfg(test)]
#[allow(missing_docs)]
pub mod tests;
