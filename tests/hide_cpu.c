/* Hides vector instructions of the processor from a program, as if it ran on an older one:
 *
 *     cc -shared -fPIC -O1 -o hide_cpu.so hide_cpu.c -ldl
 *     HIDE_CPU=avx512 LD_PRELOAD=./hide_cpu.so program     # seen: up to AVX2
 *     HIDE_CPU=avx LD_PRELOAD=./hide_cpu.so program        # seen: up to SSE4.2
 *
 * ORTHOBCD_SIMD caps our own kernels only; the libraries below (products, eigenvalues, NumPy) ask the processor.
 * Linux can make the instruction `cpuid` fault (ARCH_SET_CPUID, since 4.12, on processors that can); the fault is
 * answered with the processor's own reply less the hidden bits. Where that is not possible the program ends with status 77
 * before it begins, rather than run on what it was to be kept from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_SET_CPUID 0x1012
#define BIT(n) (1u << (n))

static uint32_t hidden_1_ecx, hidden_7_ebx, hidden_7_ecx, hidden_7_edx, hidden_71_eax;
static int active;

static void on_cpuid_fault(int signal_number, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const uint8_t *at = (const uint8_t *)r[REG_RIP];
    if (info->si_code != SI_KERNEL || at[0] != 0x0f || at[1] != 0xa2) {
        /* A fault of the program: let it fault again, with the usual end. */
        signal(signal_number, SIG_DFL);
        return;
    }
    uint32_t leaf = (uint32_t)r[REG_RAX], sub = (uint32_t)r[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(leaf), "c"(sub));
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 1)
        c &= ~hidden_1_ecx;
    if (leaf == 7 && sub == 0) {
        b &= ~hidden_7_ebx;
        c &= ~hidden_7_ecx;
        d &= ~hidden_7_edx;
    }
    if (leaf == 7 && sub == 1)
        a &= ~hidden_71_eax;
    r[REG_RAX] = a;
    r[REG_RBX] = b;
    r[REG_RCX] = c;
    r[REG_RDX] = d;
    r[REG_RIP] += 2;
}

/* Nobody else may take over the fault (Python's faulthandler would). */
int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    static int (*next)(int, const struct sigaction *, struct sigaction *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "sigaction");
    return next(number, active && number == SIGSEGV ? NULL : action, old);
}

__attribute__((constructor)) static void hide(void) {
    const char *what = getenv("HIDE_CPU");
    if (!what || !*what)
        return;
    hidden_7_ebx = BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31);
    hidden_7_ecx = BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14);
    hidden_7_edx = BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25);
    hidden_71_eax = BIT(5);
    if (!strcmp(what, "avx")) {
        hidden_1_ecx = BIT(12) | BIT(28) | BIT(29); /* FMA, AVX, F16C */
        hidden_7_ebx |= BIT(5);                     /* AVX2 */
        hidden_7_ecx |= BIT(9) | BIT(10);           /* VAES, VPCLMULQDQ */
        hidden_71_eax |= BIT(4) | BIT(23);          /* AVX-VNNI, AVX-IFMA */
    }
    struct sigaction action = {.sa_sigaction = on_cpuid_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    active = 1;
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0)
        _exit(77);
}
