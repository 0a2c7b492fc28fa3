//! What a plugin must know of an x86-64 instruction: whether it can be left half-way (a fault, or QEMU doing device
//! I/O over again), and whether it calls, returns, leaves the kernel or repeats.
//!
//! Instructions that are not known here are `Reach::Unknown`: they are counted more slowly, never wrongly.

/// A mark: the constant in a 7-byte NOP, `0f 1f 80 imm32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The measured region begins.
    Begin,
    /// The measured region ends.
    End,
    /// One operation has ended.
    Operation,
    /// The agent's: another run of a program.
    NextRun,
    /// The agent's: the program is about to start.
    RunBegin,
    /// The agent's: the program has ended.
    RunEnd,
}

/// A repeated string instruction (`rep movsb`…).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Bytes an iteration works on.
    pub width: u8,
    /// Memory accesses that QEMU makes an iteration.
    pub accesses: u8,
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on, jumps, or does something that is of no interest here.
    Plain,
    /// A near call.
    Call,
    /// A near return.
    Return,
    /// `iret`, `sysret`, `sysexit`: back to what was interrupted, or to the program.
    Leave,
    /// One of ours.
    Mark(Mark),
    /// A repeated string instruction.
    Repeat(Repeat),
}

/// Which memory an instruction touches, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// None: it cannot fault.
    Nothing,
    /// The stack, the CPU's own area (`gs:`), or the program's own image: in the kernel these are always there.
    Own,
    /// One access, anywhere.
    Once,
    /// Several accesses, or a privileged instruction, or one that is not known here.
    Unknown,
}

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Control flow.
    pub flow: Flow,
    /// Memory.
    pub reach: Reach,
}

const MARKS: [(u32, Mark); 6] = [
    (0x4b54_0001, Mark::Begin),
    (0x4b54_0002, Mark::End),
    (0x4b54_0003, Mark::Operation),
    (0x4b54_0004, Mark::NextRun),
    (0x4b54_0005, Mark::RunBegin),
    (0x4b54_0006, Mark::RunEnd),
];

/// Reads the instruction in `bytes` (exactly one, 1 to 15 bytes).
pub fn decode(bytes: &[u8]) -> Decoded {
    let prefixes = Prefixes::read(bytes);
    let rest = &bytes[prefixes.length.min(bytes.len())..];
    match rest {
        [] => plain(Reach::Unknown),
        [0x0f, opcode, operands @ ..] => two_bytes(
            *opcode,
            &Operand::read(operands, &prefixes),
            &prefixes,
            operands,
        ),
        [opcode, operands @ ..] => {
            one_byte(*opcode, &Operand::read(operands, &prefixes), &prefixes)
        }
    }
}

/// Whether `before` (the bytes in front of an address) may end with a repeated string instruction.
pub fn may_end_with_repeat(before: &[u8]) -> bool {
    let [head @ .., last] = before else {
        return false;
    };
    if !is_string(*last) {
        return false;
    }
    let is_rep = |byte: Option<&u8>| matches!(byte, Some(0xf2 | 0xf3));
    let mut back = head.iter().rev();
    let first = back.next();
    is_rep(first)
        || (matches!(first, Some(0x40..=0x4f | 0x66 | 0x67))
            && back.take(2).any(|byte| is_rep(Some(byte))))
}

/// What stands before an instruction's opcode.
#[derive(Default)]
pub struct Prefixes {
    /// How many bytes they are.
    pub length: usize,
    rex: u8,
    operand_16: bool,
    segment: bool,
    gs: bool,
    /// `rep` or `repne`.
    pub repeat: bool,
    /// `lock`.
    pub lock: bool,
}

impl Prefixes {
    /// Reads those of the instruction in `bytes`.
    pub fn read(bytes: &[u8]) -> Self {
        let mut found = Self::default();
        for &byte in bytes {
            match byte {
                0x66 => found.operand_16 = true,
                0x65 => (found.segment, found.gs) = (true, true),
                0x64 => found.segment = true,
                0xf2 | 0xf3 => found.repeat = true,
                0xf0 => found.lock = true,
                0x26 | 0x2e | 0x36 | 0x3e | 0x67 => {}
                0x40..=0x4f => {
                    found.rex = byte;
                    found.length += 1;
                    break;
                }
                _ => break,
            }
            found.length += 1;
        }
        found
    }

    fn width(&self, opcode: u8) -> u8 {
        match (opcode & 1, self.rex & 8, self.operand_16) {
            (0, _, _) => 1,
            (_, 8, _) => 8,
            (_, _, true) => 2,
            _ => 4,
        }
    }
}

/// What a ModRM byte says, for the opcodes that have one.
struct Operand {
    register: bool,
    own: bool,
    extension: u8,
}

impl Operand {
    fn read(operands: &[u8], prefixes: &Prefixes) -> Self {
        let Some(&modrm) = operands.first() else {
            return Self {
                register: false,
                own: false,
                extension: 0,
            };
        };
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let base = if rm == 4 {
            operands.get(1).map_or(0, |sib| sib & 7)
        } else {
            rm
        };
        let on_stack = rm == 4 && base == 4 && prefixes.rex & 1 == 0 && !prefixes.segment;
        let in_image = mode == 0 && rm == 5 && !prefixes.segment;
        Self {
            register: mode == 3,
            own: mode != 3 && (on_stack || in_image || prefixes.gs),
            extension: (modrm >> 3) & 7,
        }
    }

    /// One load or one store, where the operand is memory.
    fn once(&self) -> Decoded {
        plain(self.or_memory(Reach::Once))
    }

    /// A load and a store, where the operand is memory.
    fn changed(&self) -> Decoded {
        plain(self.or_memory(Reach::Unknown))
    }

    fn or_memory(&self, memory: Reach) -> Reach {
        match (self.register, self.own) {
            (true, _) => Reach::Nothing,
            (_, true) => Reach::Own,
            _ => memory,
        }
    }
}

const fn plain(reach: Reach) -> Decoded {
    Decoded {
        flow: Flow::Plain,
        reach,
    }
}

const fn flow(flow: Flow, reach: Reach) -> Decoded {
    Decoded { flow, reach }
}

const fn is_string(opcode: u8) -> bool {
    matches!(opcode, 0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf)
}

fn string(opcode: u8, prefixes: &Prefixes) -> Decoded {
    let accesses = if matches!(opcode, 0xa4..=0xa7 | 0x6c | 0x6d) {
        2
    } else {
        1
    };
    if prefixes.repeat {
        let width = if opcode < 0x70 {
            prefixes.width(opcode).min(4)
        } else {
            prefixes.width(opcode)
        };
        return flow(Flow::Repeat(Repeat { width, accesses }), Reach::Unknown);
    }
    plain(if accesses == 1 && opcode >= 0xaa {
        Reach::Once
    } else {
        Reach::Unknown
    })
}

fn one_byte(opcode: u8, operand: &Operand, prefixes: &Prefixes) -> Decoded {
    match opcode {
        _ if is_string(opcode) => string(opcode, prefixes),
        0x00..=0x3f => arithmetic(opcode, operand),
        0x50..=0x5f | 0x68 | 0x6a | 0x9c | 0xc9 => plain(Reach::Own),
        0x63 | 0x69 | 0x6b | 0x84 | 0x85 | 0x88..=0x8c | 0xc6 | 0xc7 => operand.once(),
        0x80 | 0x81 | 0x83 if operand.extension == 7 => operand.once(),
        0x80 | 0x81 | 0x83 | 0x86 | 0x87 | 0xc0 | 0xc1 | 0xd0..=0xd3 | 0xfe => operand.changed(),
        0x70..=0x7f
        | 0x8d
        | 0x90..=0x99
        | 0x9e
        | 0x9f
        | 0xa8
        | 0xa9
        | 0xb0..=0xbf
        | 0xe0..=0xe3 => plain(Reach::Nothing),
        0xe9 | 0xeb | 0xf5 | 0xf8..=0xfd => plain(Reach::Nothing),
        0xa0..=0xa3 => plain(Reach::Once),
        0xc2 | 0xc3 => flow(Flow::Return, Reach::Own),
        0xcf => flow(Flow::Leave, Reach::Unknown),
        0xe8 => flow(Flow::Call, Reach::Own),
        0xf6 | 0xf7 => unary(operand),
        0xff => group_5(operand),
        _ => plain(Reach::Unknown),
    }
}

fn arithmetic(opcode: u8, operand: &Operand) -> Decoded {
    match (opcode & 7, opcode >> 3) {
        (0 | 1, 7) | (2 | 3, _) => operand.once(),
        (0 | 1, _) => operand.changed(),
        (4 | 5, _) => plain(Reach::Nothing),
        _ => plain(Reach::Unknown),
    }
}

fn unary(operand: &Operand) -> Decoded {
    match operand.extension {
        0 | 1 | 4 | 5 => operand.once(),
        2 | 3 => operand.changed(),
        _ => plain(Reach::Unknown),
    }
}

fn group_5(operand: &Operand) -> Decoded {
    match operand.extension {
        0 | 1 => operand.changed(),
        2 => flow(
            Flow::Call,
            if operand.register || operand.own {
                Reach::Own
            } else {
                Reach::Unknown
            },
        ),
        4 if operand.register => plain(Reach::Nothing),
        6 => plain(if operand.register || operand.own {
            Reach::Own
        } else {
            Reach::Unknown
        }),
        _ => plain(Reach::Unknown),
    }
}

fn two_bytes(opcode: u8, operand: &Operand, prefixes: &Prefixes, operands: &[u8]) -> Decoded {
    match opcode {
        0x1f => mark(operands, prefixes).map_or(plain(Reach::Nothing), |mark| {
            flow(Flow::Mark(mark), Reach::Nothing)
        }),
        0x0d | 0x18..=0x1e | 0x80..=0x8f | 0xc8..=0xcf => plain(Reach::Nothing),
        0x07 | 0x35 => flow(Flow::Leave, Reach::Unknown),
        0x40..=0x4f
        | 0x90..=0x9f
        | 0xaf
        | 0xb6
        | 0xb7
        | 0xbe
        | 0xbf
        | 0xa3
        | 0xb8
        | 0xbc
        | 0xbd => operand.once(),
        0xba if operand.extension == 4 => operand.once(),
        0xba | 0xa4 | 0xa5 | 0xab..=0xad | 0xb0 | 0xb1 | 0xb3 | 0xbb | 0xc0 | 0xc1 => {
            operand.changed()
        }
        0xae if operand.register && !prefixes.repeat => plain(Reach::Nothing),
        _ => plain(Reach::Unknown),
    }
}

fn mark(operands: &[u8], prefixes: &Prefixes) -> Option<Mark> {
    let [0x80, constant @ ..] = operands else {
        return None;
    };
    let value = u32::from_le_bytes(constant.try_into().ok()?);
    MARKS
        .iter()
        .find(|(number, _)| prefixes.length == 0 && *number == value)
        .map(|(_, mark)| *mark)
}

#[cfg(test)]
mod tests;
