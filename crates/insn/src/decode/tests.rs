//! Each line: the bytes as `objdump` prints them, and what they are.
use super::*;

fn check(bytes: &[u8], reach: Reach, flow: Flow) {
    assert_eq!(decode(bytes), Decoded { flow, reach }, "{bytes:02x?}");
}

#[test]
fn reaches_of_common_instructions() {
    use Reach::{Nothing, Once, Own, Unknown};
    let table: &[(&[u8], Reach)] = &[
        (&[0x48, 0x89, 0xe5], Nothing),                     // mov %rsp,%rbp
        (&[0x48, 0x8b, 0x07], Once),                        // mov (%rdi),%rax
        (&[0x48, 0x8b, 0x44, 0x24, 0x08], Own),             // mov 8(%rsp),%rax
        (&[0x49, 0x8b, 0x44, 0x24, 0x08], Once),            // mov 8(%r12),%rax
        (&[0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0], Own), // mov %gs:0,%rax
        (&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], Once), // mov %fs:0x28,%rax
        (&[0x48, 0x8b, 0x05, 1, 2, 3, 4], Own),             // mov x(%rip),%rax
        (&[0x89, 0x04, 0x25, 0xb0, 0xb0, 0x5f, 0xff], Once), // mov %eax,0xffffffffff5fb0b0: the local APIC
        (&[0x55], Own),                                      // push %rbp
        (&[0x41, 0x5c], Own),                                // pop %r12
        (&[0x48, 0x8d, 0x04, 0x24], Nothing),                // lea (%rsp),%rax
        (&[0x48, 0x01, 0x07], Unknown),                      // add %rax,(%rdi)
        (&[0x48, 0x03, 0x07], Once),                         // add (%rdi),%rax
        (&[0x48, 0x39, 0x07], Once),                         // cmp %rax,(%rdi)
        (&[0x83, 0x3f, 0x01], Once),                         // cmpl $1,(%rdi)
        (&[0x83, 0x07, 0x01], Unknown),                      // addl $1,(%rdi)
        (&[0xf0, 0x0f, 0xb1, 0x17], Unknown),                // lock cmpxchg %edx,(%rdi)
        (&[0x0f, 0xb6, 0x07], Once),                         // movzbl (%rdi),%eax
        (&[0x48, 0xf7, 0xf1], Unknown),                      // div %rcx
        (&[0x0f, 0x0b], Unknown),                            // ud2
        (&[0xf3, 0x0f, 0x1e, 0xfa], Nothing),                // endbr64
        (&[0x74, 0x02], Nothing),                            // je
        (&[0x0f, 0x84, 0, 0, 0, 0], Nothing),                // je
        (&[0x0f, 0x31], Unknown),                            // rdtsc
        (&[0xff, 0x67, 0x08], Unknown),                      // jmp *8(%rdi)
        (&[0xff, 0xe0], Nothing),                            // jmp *%rax
        (&[0xc5, 0xf8, 0x77], Unknown),                      // vzeroupper
        (&[0x0f, 0xae, 0xe8], Nothing),                      // lfence
    ];
    for (bytes, reach) in table {
        check(bytes, *reach, Flow::Plain);
    }
}

#[test]
fn calls_returns_and_ways_out_of_the_kernel() {
    check(&[0xe8, 0, 0, 0, 0], Reach::Own, Flow::Call);
    check(&[0xff, 0xd0], Reach::Own, Flow::Call); // call *%rax
    check(&[0xff, 0x50, 0x18], Reach::Unknown, Flow::Call); // call *0x18(%rax)
    check(&[0xc3], Reach::Own, Flow::Return);
    check(&[0xf3, 0xc3], Reach::Own, Flow::Return);
    check(&[0x48, 0xcf], Reach::Unknown, Flow::Leave);
    check(&[0x48, 0x0f, 0x07], Reach::Unknown, Flow::Leave);
}

#[test]
fn repeated_string_instructions_have_a_width() {
    let table: &[(&[u8], u8, u8)] = &[
        (&[0xf3, 0xa4], 1, 2),       // rep movsb
        (&[0xf3, 0x48, 0xa5], 8, 2), // rep movsq
        (&[0xf3, 0xaa], 1, 1),       // rep stosb
        (&[0xf3, 0x48, 0xab], 8, 1), // rep stosq
        (&[0xf3, 0xab], 4, 1),       // rep stosl
        (&[0x66, 0xf3, 0xab], 2, 1), // rep stosw
        (&[0xf2, 0xae], 1, 1),       // repne scasb
        (&[0xf3, 0xa6], 1, 2),       // repe cmpsb
    ];
    for (bytes, width, accesses) in table {
        check(
            bytes,
            Reach::Unknown,
            Flow::Repeat(Repeat {
                width: *width,
                accesses: *accesses,
            }),
        );
        assert!(may_end_with_repeat(bytes), "{bytes:02x?}");
    }
    check(&[0xaa], Reach::Once, Flow::Plain);
}

#[test]
fn what_cannot_end_with_a_repeat() {
    for bytes in [
        &[][..],
        &[0xaa],
        &[0x90, 0xaa],
        &[0xf3, 0xc3],
        &[0x48, 0xab],
    ] {
        assert!(!may_end_with_repeat(bytes), "{bytes:02x?}");
    }
}

#[test]
fn marks_are_told_from_other_nops() {
    for (number, mark) in [
        (1, Mark::Begin),
        (2, Mark::End),
        (3, Mark::Operation),
        (4, Mark::NextRun),
        (5, Mark::RunBegin),
        (6, Mark::RunEnd),
    ] {
        check(
            &[0x0f, 0x1f, 0x80, number, 0x00, 0x54, 0x4b],
            Reach::Nothing,
            Flow::Mark(mark),
        );
    }
    check(
        &[0x0f, 0x1f, 0x80, 0x00, 0x00, 0x00, 0x00],
        Reach::Nothing,
        Flow::Plain,
    );
    check(&[0x0f, 0x1f, 0x44, 0x00, 0x00], Reach::Nothing, Flow::Plain);
}

#[test]
fn no_byte_sequence_is_refused() {
    for first in 0..=255u8 {
        for second in [0x00, 0x0f, 0x44, 0xc0, 0xff] {
            decode(&[first]);
            decode(&[first, second]);
            decode(&[0x48, first, second]);
            decode(&[0x0f, first, second, 0x24]);
        }
    }
}
