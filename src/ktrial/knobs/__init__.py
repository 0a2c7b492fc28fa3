"""Knobs: what a kernel can be told, where, and how it is changed and put back.

    with changing(target, "my study", say=print) as changes:
        changes.apply(("vm.swappiness", "10"), ("queue/scheduler@vda", "none"))
        ...

`catalogue` has all that are known, one file a subsystem; `lookup` finds what a user named on a running
system; `values` says which values make sense; `apply` writes, and notes in the `journal` what `restore`
puts back.
"""
