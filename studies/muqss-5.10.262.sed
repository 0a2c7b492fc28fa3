# The MuQSS 0.205 patch is written for 5.10.0. These are the interfaces that the stable series changed until 5.10.262,
# in the lines that the patch adds. No line is added or removed, so that its hunks stay as long as they say.
#     sed -f studies/muqss-5.10.262.sed MUQSS.patch >muqss-5.10.262.patch
# io_uring has a directory of its own.
s|"../../fs/io-wq.h"|"../../io_uring/io-wq.h"|
# What the idle loop calls, empty for a scheduler without CFS's idle balance: in place of a comment in sched.h.
s|^+/\* Begin compatibility wrappers for MuQSS/CFS differences \*/$|+static inline void nohz_run_idle_balance(int cpu) { }|
# Another parameter, which MuQSS has no use for; and one parameter less.
s|^+void sched_post_fork(struct task_struct \*p)$|+void sched_post_fork(struct task_struct *p, struct kernel_clone_args *kargs)|
s|^+int task_can_attach(struct task_struct \*p,$|+int task_can_attach(|
s|^+\([ \t]*\)const struct cpumask \*cs_cpus_allowed)$|+\1struct task_struct *p)|
# A mutex in place of a semaphore.
s|^\(+.*\)cpuset_read_\(un\)\{0,1\}lock()|\1cpuset_\2lock()|
# Limits of sysctls that have become shared constants.
s|^\(+.*\)&one_thousand,|\1SYSCTL_ONE_THOUSAND,|
s|^\(+.*\)&one_hundred,|\1SYSCTL_ONE_HUNDRED,|
s|^\(+.*\)&two,|\1SYSCTL_TWO,|
