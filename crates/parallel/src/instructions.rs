//! The instructions that mean something here, by their bytes.

/// What an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// The CPU sleeps until it is interrupted.
    Halt,
    /// The CPU waits for another one, in a loop.
    Pause,
    /// A mark of the agent's or a workload's (docs/architecture/guest-protocol.md).
    Mark(u32),
    /// `cmpxchg8b` or `cmpxchg16b`, with memory.
    ExchangePair,
    /// Any other.
    Other,
}

/// What these bytes are.
pub fn recognised(bytes: &[u8]) -> Instruction {
    match bytes {
        [0xf4] => Instruction::Halt,
        [0xf3, 0x90] => Instruction::Pause,
        [0x0f, 0x1f, 0x80, number @ ..] if number.len() == 4 => {
            let number = u32::from_le_bytes([number[0], number[1], number[2], number[3]]);
            match number >> 16 {
                0x4b54 => Instruction::Mark(number),
                _ => Instruction::Other,
            }
        }
        _ if exchanges_pair(bytes) => Instruction::ExchangePair,
        _ => Instruction::Other,
    }
}

/// Behind prefixes: 0F C7 /1 with an operand in memory.
fn exchanges_pair(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &u8| matches!(byte, 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let start = bytes.iter().take_while(|byte| is_prefix(byte)).count();
    match bytes[start..] {
        [0x0f, 0xc7, operands, ..] => operands >> 6 != 3 && operands >> 3 & 7 == 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_by_all_their_bytes() {
        use Instruction::{ExchangePair, Halt, Mark, Other, Pause};
        let table: [(&[u8], Instruction); 12] = [
            (&[0xf4], Halt),
            (&[0xf3, 0x90], Pause),
            (&[0x90], Other),
            (&[0xf3, 0xc3], Other),
            (&[0x0f, 0x1f, 0x80, 3, 0, 0x54, 0x4b], Mark(0x4b54_0003)),
            (&[0x0f, 0x1f, 0x80, 0, 0, 0, 0], Other),
            (&[0x0f, 0x1f, 0x40, 0], Other),
            (&[0x65, 0x48, 0x0f, 0xc7, 0x0e], ExchangePair),
            (&[0xf0, 0x49, 0x0f, 0xc7, 0x4c, 0x24, 0x10], ExchangePair),
            (&[0x0f, 0xc7, 0xf0], Other),
            (&[0x0f, 0xc7, 0x24, 0x24], Other),
            (&[0x48], Other),
        ];
        for (bytes, wanted) in table {
            assert_eq!(recognised(bytes), wanted, "{bytes:x?}");
        }
    }
}
