use super::*;

#[test]
fn classes_by_opcode() {
    let table: &[(&[u8], Class)] = &[
        (&[0x48, 0x89, 0xd8], Class::Plain),              // mov rax, rbx
        (&[0x48, 0xf7, 0xf1], Class::Divide),             // div rcx
        (&[0xf7, 0x7d, 0x08], Class::Divide),             // idiv dword [rbp+8]
        (&[0x48, 0xf7, 0xe1], Class::Plain),              // mul rcx
        (&[0xf0, 0x48, 0x0f, 0xb1, 0x0f], Class::Locked), // lock cmpxchg [rdi], rcx
        (&[0x48, 0x87, 0x07], Class::Locked),             // xchg [rdi], rax
        (&[0x48, 0x87, 0xc7], Class::Plain),              // xchg rdi, rax
        (&[0x0f, 0xae, 0xf0], Class::Fence),              // mfence
        (&[0x0f, 0xae, 0x38], Class::Plain),              // clflush [rax]
        (&[0xf3, 0x90], Class::Pause),                    // pause
        (&[0x90], Class::Plain),                          // nop
        (&[0x0f, 0x31], Class::ReadClock),                // rdtsc
        (&[0x0f, 0x01, 0xf9], Class::ReadClock),          // rdtscp
        (&[0x0f, 0xa2], Class::Cpuid),                    // cpuid
        (&[0x0f, 0x30], Class::WriteMsr),                 // wrmsr
        (&[0x0f, 0x32], Class::ReadMsr),                  // rdmsr
        (&[0x0f, 0x01, 0x38], Class::InvalidatePage),     // invlpg [rax]
        (&[0x66, 0x0f, 0x38, 0x82, 0x01], Class::InvalidatePage), // invpcid rax, [rcx]
        (&[0x0f, 0x22, 0xd8], Class::SwitchTables),       // mov cr3, rax
        (&[0x0f, 0x22, 0xe0], Class::ControlRegister),    // mov cr4, rax
        (&[0x0f, 0x01, 0xf8], Class::SwapGs),             // swapgs
        (&[0x0f, 0x00, 0x6c, 0x24, 0x08], Class::ClearBuffers), // verw [rsp+8]
        (&[0xe6, 0x80], Class::Port),                     // out 0x80, al
        (&[0xec], Class::Port),                           // in al, dx
        (&[0x0f, 0x05], Class::SystemCall),               // syscall
        (&[0x48, 0x0f, 0x07], Class::SystemReturn),       // sysretq
        (&[0x48, 0xcf], Class::InterruptReturn),          // iretq
        (&[], Class::Plain),
    ];
    for (bytes, expected) in table {
        assert_eq!(class(bytes, None), *expected, "{bytes:02x?}");
    }
}

#[test]
fn a_wrmsr_costs_by_the_register_that_it_writes() {
    let wrmsr = |before: &[&[u8]]| {
        let register = before
            .iter()
            .fold(None, |known, bytes| selected(bytes, known));
        class(&[0x0f, 0x30], register)
    };
    let (control, barrier): (&[u8], &[u8]) = (&[0xb9, 0x48, 0, 0, 0], &[0xb9, 0x49, 0, 0, 0]);
    assert_eq!(wrmsr(&[control]), Class::SpeculationControl);
    // mov eax, [rip+…] and xor edx, edx come between.
    let between: [&[u8]; 3] = [control, &[0x8b, 0x05, 1, 2, 3, 4], &[0x31, 0xd2]];
    assert_eq!(wrmsr(&between), Class::SpeculationControl);
    assert_eq!(wrmsr(&[control, barrier]), Class::PredictionBarrier);
    assert_eq!(wrmsr(&[&[0xb9, 0x0b, 1, 0, 0]]), Class::FlushData);
    assert_eq!(wrmsr(&[&[0xb9, 0x80, 0, 0, 0xc0]]), Class::WriteMsr);
    // What comes from elsewhere is not known: mov ecx, [rbx]; mov ecx, eax; mov rcx, rax; pop rcx.
    for other in [
        &[0x8b, 0x0b][..],
        &[0x89, 0xc1],
        &[0x48, 0x89, 0xc1],
        &[0x59],
    ] {
        assert_eq!(wrmsr(&[control, other]), Class::WriteMsr, "{other:02x?}");
    }
    assert_eq!(wrmsr(&[control, &[0x31, 0xc9]]), Class::WriteMsr);
}

#[test]
fn branches_by_opcode() {
    let table: &[(&[u8], Branch)] = &[
        (&[0x75, 0xfe], Branch::Conditional { target: 0xffe }), // jne back to itself, at 0xffe
        (
            &[0x0f, 0x84, 0x00, 0x01, 0x00, 0x00], // je 0x100 on
            Branch::Conditional { target: 0x1100 },
        ),
        (&[0xe8, 0, 0, 0, 0], Branch::Call),
        (&[0x41, 0xff, 0xd3], Branch::IndirectCall), // call r11
        (&[0x3e, 0xff, 0xe0], Branch::IndirectJump), // notrack jmp rax
        (&[0xff, 0x30], Branch::None),               // push [rax]
        (&[0xc3], Branch::Return),
        (&[0xf3, 0xc3], Branch::Return), // repz ret
        (&[0xeb, 0x10], Branch::None),   // jmp
        (&[0x90], Branch::None),
    ];
    for (bytes, expected) in table {
        assert_eq!(branch(bytes, 0x1000), *expected, "{bytes:02x?}");
    }
}

#[test]
fn only_vectors_and_pairs_are_longer_than_eight_bytes_in_one_access() {
    let table: &[(&[u8], u64)] = &[
        (&[0x48, 0x89, 0x04, 0x24], 8),              // mov [rsp], rax
        (&[0x55], 8),                                // push rbp
        (&[0xff, 0x15, 0, 0, 0, 0], 8),              // call [rip]
        (&[0x0f, 0xb6, 0x07], 8),                    // movzx eax, byte [rdi]
        (&[0xf0, 0x48, 0x0f, 0xb1, 0x17], 8),        // lock cmpxchg [rdi], rdx
        (&[0xf0, 0x48, 0x0f, 0xc7, 0x0f], 16),       // lock cmpxchg16b [rdi]
        (&[0xf3, 0x0f, 0x6f, 0x06], 16),             // movdqu xmm0, [rsi]
        (&[0x48, 0x0f, 0xae, 0x07], 16),             // fxsave64 [rdi]
        (&[0xc5, 0xfe, 0x6f, 0x06], 16),             // vmovdqu ymm0, [rsi]
        (&[0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x06], 16), // vmovdqu64 zmm0, [rsi]
    ];
    for (bytes, expected) in table {
        assert_eq!(longest_access(bytes), *expected, "{bytes:x?}");
    }
}
