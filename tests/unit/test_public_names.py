"""The names that others may rely on: a change of this table is a change of the interface."""

import ast
import importlib
import pkgutil
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from ktrial import model

PUBLIC = {
    "ktrial.errors": """
        AmbiguousTreatment AnswerNotWritten BadAmount BadBaselineName BadBudget BadBuildOption
        BadCommand BadConfigFile BadGoal BadKernelName BadKernelRange BadKnobFile BadKnobName
        BadKnobRange BadKnobSpace BadKnobValue BadLimit BadMakeVariable BadOutput BadParameter
        BadPatch BadPin BadRange BadSeries BadSetting BaselineFailed BaselineIncomparable
        BaselineLacks BaselineNotThere BisectError BudgetTooSmall BuildError BuildFailed
        BuildToolsMissing CacheDamaged CacheFull CacheUnusable CalibrationNotThere
        CandidatesIncomparable CannotLoadState CannotSaveState CgroupUnusable CheckError
        ColumnUnknown CompilerUnsuitable ConfigUnusable DiskNotMade EndUnresolved ExplanationError
        FetchFailed FileNotCarried FileToCarry FormatUnknown FrameError GoalContradicts GroupUnknown
        GuardsNeverMet GuestEnded GuestError GuestProgramsMissing HistoryError HostChangeForbidden
        ImageError ImageTruncated ImageUnreadable ImportFailed Interrupted JournalError
        JournalForbidden JournalHeld JournalUnsafe KernelError KernelNameAmbiguous KernelNotFound
        KnobAbsent KnobError KnobForbidden KnobGone KnobMoved KnobNeedsInstance KnobNeedsReboot
        KnobNotMounted KnobNotOnMachine KnobNotTaken KnobRefused KnobRounded KtrialError KvmUnusable
        LibraryNotFound LimitNotSet ListsOutOfDate MachineError MachineFailedCheck MachineStopped
        MachineToolMissing MeasurementsDamaged MeasurementsTooLarge MeasurementsUnreadable
        MetricNotFound MetricNotMeasured ModulesUnusable MonitorError
        MonitorFailed MonitorUnusable NewerStore NoDebianSource NoHostKernel
        NoKernelInRange NoMarkedRegion NoMatrix NoMeasurements NoPluginHere NoRecipe
        NoSpaceForSnapshot NoSuchBackend NoSuchBuild NoSuchRelease NoSuchSource NoSymbolsInGuest
        NoValidConfiguration NotAKernel NotASource NotAStore NotATune NotCounted NotInForce
        NotMeasured NotOneSource NotPositive NotTheSameSearch NothingDiffers NothingToCalibrate
        NothingToConfirm NothingToRecommend NothingToResume NothingToWatch NothingTuned ObjectiveMissing
        OptimiserMissing OptionNotTaken OtherMachine PatchNotApplied PatchNotAwaited PatchNotGiven
        PluginCountsUnreadable ProgramNotFound ProgramNotInstalled QemuGone QemuRefused QemuTooOld
        QemuUnusable SameTreatmentTwice SearchNotRun SiteInTheWay SiteNotWritten SourceChanged
        SourceNotClean SourceUnusable SpaceEmpty StoreDamaged StoreError StoreForbidden StoreFull
        StoreLocked StudyEmpty StudyError StudyMistake StudyMistakes StudyNotStored StudySyntaxError
        StudyUnreadable SymbolsElsewhere SymbolsUnknown TimedError TooManyCpus TooManyGroups
        ToolFailed ToolMissing TreatmentNotSaid TuneBaselineFailed TuningError UnknownKnob
        UnknownMachine UnknownModule UnknownOptimiser UnknownOption UnknownParameter
        UnknownSubsystem UnknownTreatment UnknownWorkload UnsafeXml ValuesUnreadable
        WorkloadAmbiguous WorkloadError WorkloadFailed WorkloadKilled WorkloadNotInStudy WorkloadNotSaid
        WorkloadNotStarted WorkloadTimedOut WrongArchitecture
    """,
    "ktrial.model.advice": """
        NOTES DataWarning WarningKind
    """,
    "ktrial.model.build": """
        Build Change DEBIAN DEFCONFIG GUEST Patch
    """,
    "ktrial.model.calibration": """
        Calibration MetricCalibration
    """,
    "ktrial.model.analysis": """
        Analysis Anova FamilyAnalysis GroupAnalysis Pair RecomputedScore
    """,
    "ktrial.model.base": """
        Model digest
    """,
    "ktrial.model.design": """
        BUILD_KINDS Design Factor FactorKind LevelValue Perturbation Plan PlannedTrial Treatment
        level_shown told_apart
    """,
    "ktrial.model.environment": """
        Environment Reading ReadingKind
    """,
    "ktrial.model.differences": """
        CounterDifference Differences LevelDifference OptionDifference Why
    """,
    "ktrial.model.function_files": """
        FunctionFiles
    """,
    "ktrial.model.kernel_values": """
        Governed KernelValues ValueDifference
    """,
    "ktrial.model.explanation": """
        Count Explanation Match Row Side
    """,
    "ktrial.model.kernel": """
        Kernel Origin
    """,
    "ktrial.model.kernel_difference": """
        Cause KernelDifference ModuleChange OptionChange PatchDifference Respect Side
    """,
    "ktrial.model.kernel_profile": """
        Profile
    """,
    "ktrial.model.menus": """
        MenuOption Menus
    """,
    "ktrial.model.history": """
        Change ChangeKind History Line Point System
    """,
    "ktrial.model.knob": """
        Allowed Default Knob KnobKind Place Safety Successor Version version_of
    """,
    "ktrial.model.machine": """
        Boot CarriedFile CgroupLimits MachineIdentity
    """,
    "ktrial.model.matrix": """
        Cell Matrix MatrixRow
    """,
    "ktrial.model.measurements": """
        Family Group Imported IndexRow Rounded Score Summary
    """,
    "ktrial.model.monitored": """
        Monitored
    """,
    "ktrial.model.profile": """
        CacheCounts CallNode CycleModel FunctionCount OperationCounts PROGRAM PageCount PluginCounts
        ProgramCount RegionCounts StringCounts TaskCount UNKNOWN inclusive_counts
    """,
    "ktrial.model.recommendation": """
        Candidate Recommendation Regret
    """,
    "ktrial.model.record": """
        StudyRecord
    """,
    "ktrial.model.search": """
        LeftOut Search
    """,
    "ktrial.model.series": """
        Sampled Series SeriesKind TrialSampled
    """,
    "ktrial.model.study": """
        Disk DiskKind MachineSettings Stopping Study Timing
    """,
    "ktrial.model.systems": """
        Across Agreement OnSystem
    """,
    "ktrial.model.trial": """
        CounterDelta Outcome Provenance Trial
    """,
    "ktrial.model.tuning": """
        Budget Configuration Constraint Cost Dimension Effect FrontPoint Goal Guard Importance
        Objective Observation OnlyOneOf Order Purpose Range Relation Space Tuned TunedInteraction
        related
    """,
    "ktrial.model.units": """
        LARGEST_MEMORY_MIB SMALLEST_MEMORY_MIB interval margin memory_mib seconds
    """,
    "ktrial.model.unixbench": """
        BASELINES SCORE
    """,
    "ktrial.model.variability": """
        Mound Scatter Variability
    """,
    "ktrial.model.verdict": """
        Comparison Interaction Result Verdict
    """,
    "ktrial.model.workload": """
        Command CountedBy Direction Metric MetricRule Mode Parameter STRING_BYTES Sample WorkloadDescription
        WorkloadUse short_labels
    """,
    "ktrial.target": """
        Beside Collect Failure LoadModule LocalTarget MakeDirectory Mount Push Read Run SampledFiles Sampling
        Start Step StepResult Stop Target Walk Watcher Write
    """,
    "ktrial.knobs": """
        Applied Changes Ending Entry Found Journal LEFT Lister Owner Setting Stage System Undone
        abandoned apply changing find instances is_anything_to_undo journal_directory restore tell
    """,
    "ktrial.kernels": """
        NameRecord Progress Scheduling Symbol Symbols add all_kernels builtin_names cache_directory
        canonical_name config_of config_value get module_names record remove resolve save_symbols scheduling
        silent symbols
    """,
    "ktrial.kernels.source": """
        DEFCONFIG GUEST KeptTree MAKE_VARIABLES Wanted add aliases build build_directory build_seconds cached
        check_alias
        configured debian_config debian_source give_alias kept_trees menu_of name_of option_of
        recipe_of requested variable_of wanted
    """,
    "ktrial.machines": """
        BootedTarget CountingMachine CountingTarget Machine Progress SpeakingTarget find
        found names
    """,
    "ktrial.workloads": """
        CountsOperations DEFAULT DISK QUICK RunsPrograms WHOLE_BENCHMARKS Workload catalogue check
        descriptions find found
    """,
    "ktrial.monitors": """
        AnyMonitor BesideMonitor Monitor Prepared SampledMonitor Watched beside costly_files counters
        found sampled_files series watched_files
    """,
    "ktrial.stats": """
        Arm answer compare
    """,
    "ktrial.stats.timed": """
        Look Measured Power SequentialDesign benjamini_hochberg blocks_needed calibrate checks
        confirm holm look max_t_permutation permutation_p power ratio_spread smallest_detectable
        verdict_of
    """,
    "ktrial.stats.change_points": """
        ALPHA Shift p_of_any shifts shifts_of_all steps
    """,
    "ktrial.stats.unblocked": """
        Moments Ratio games_howell games_howell_pairs mean_interval moments one_way possible_runs
        ratio recovered_runs sd_interval welch welch_df
    """,
    "ktrial.stats.audit": """
        audit
    """,
    "ktrial.importers": """
        Choices Importer LARGEST_MIB SourceFile found read read_all source_file
    """,
    "ktrial.store": """
        Store StoredStudy default_location open_store
    """,
    "ktrial.search.tuning": """
        ended run_search
    """,
    "ktrial.runner.session": """
        TRIED_AGAIN run
    """,
    "ktrial.runner.result": """
        Described metrics_in_catalogue metrics_of record record_of result
    """,
    "ktrial.report": """
        csv html kernel_difference_html markdown samples_csv series_csv whys
    """,
}
"""Module → its public names: `__all__`, or where there is none, what it defines without an underscore."""

MODULES = (
    "ktrial.errors",
    *(f"{model.__name__}.{module.name}" for module in pkgutil.iter_modules(model.__path__)),
    "ktrial.target",
    "ktrial.knobs",
    "ktrial.kernels",
    "ktrial.kernels.source",
    "ktrial.machines",
    "ktrial.workloads",
    "ktrial.monitors",
    "ktrial.stats",
    "ktrial.stats.timed",
    "ktrial.stats.change_points",
    "ktrial.stats.unblocked",
    "ktrial.stats.audit",
    "ktrial.importers",
    "ktrial.store",
    "ktrial.search.tuning",
    "ktrial.runner.session",
    "ktrial.runner.result",
    "ktrial.report",
)


def public_names(name: str) -> set[str]:
    module = importlib.import_module(name)
    exported = getattr(module, "__all__", None)
    return set(exported) if exported is not None else defined_names(module)


def defined_names(module: ModuleType) -> set[str]:
    """Its own: not what it imports."""
    found: set[str] = set()
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def test_the_table_has_every_module_and_no_other() -> None:
    assert set(PUBLIC) == set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_the_public_names_are_those_of_the_table_and_are_there(module: str) -> None:
    names = sorted(public_names(module))
    assert names == sorted(PUBLIC[module].split())
    assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_public_class_and_function_says_what_it_is(module: str) -> None:
    """With words of its own: neither inherited nor the signature that a dataclass gets."""
    found = {name: getattr(importlib.import_module(module), name) for name in public_names(module)}
    classes_and_functions = {
        name: str(each.__doc__ or "") for name, each in found.items() if isinstance(each, type | FunctionType)
    }
    silent = [name for name, said in classes_and_functions.items() if not said or said.startswith(f"{name}(")]
    assert silent == []
