"""What names a study may use here: the workloads, machines and kernel providers that are installed."""

from ktrial.runner.study_file import Known


def known() -> Known:
    """Everything that is installed."""
    from ktrial import machines
    from ktrial.kernels.provider import provider_of
    from ktrial.workloads import descriptions

    def kernel_name(name: str) -> str:
        provider, wanted = provider_of(name)
        return provider.canonical(name, wanted)

    return Known(workloads=descriptions(), machines=machines.names(), kernel_name=kernel_name)
