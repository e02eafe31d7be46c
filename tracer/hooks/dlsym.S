// dlsym, exported. The loader answers RTLD_NEXT and RTLD_DEFAULT by the return address of its
// caller, so what is not ours must reach it by a jump: a call from here would make RTLD_NEXT find
// the definition after this library, and a program that interposes a function of its own would
// then find itself, for ever.
        .text
        .globl  dlsym
        .type   dlsym, @function
        .p2align 4
dlsym:
        .cfi_startproc
        endbr64
        pushq   %rdi
        .cfi_adjust_cfa_offset 8
        pushq   %rsi
        .cfi_adjust_cfa_offset 8
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        call    vramtrack_answer_dlsym          // 1: not ours
        addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %rsi
        .cfi_adjust_cfa_offset -8
        popq    %rdi
        .cfi_adjust_cfa_offset -8
        cmpq    $1, %rax
        jne     1f
        jmp     *vramtrack_real_dlsym(%rip)
1:      ret
        .cfi_endproc
        .size   dlsym, . - dlsym

        .section .note.GNU-stack, "", @progbits
