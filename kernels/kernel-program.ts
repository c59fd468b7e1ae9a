import type { FormatName } from '../src/formats/index.js';
import type {
  CtaCounters,
  Finding,
  MemoryModel,
  MemoryModelName,
  Scheduler,
  TraceEvent,
  UnitRates,
} from '../src/machine/index.js';
import type { FeatureName, Problem, ProblemShape } from '../src/problem/index.js';

/** One mistake in the synchronisation of a program's warps. */
export interface ProgramMutant {
  /** As `remove: K/V empty: load waits`; no two of a program have the same. */
  readonly id: string;
  /** The instructions that the mistake is about. */
  readonly site: string;
  readonly kind: string;
  readonly description: string;
  /** Whether it changes anything in a pair of CTAs only. */
  readonly needsPair: boolean;
  /** The memory model in which it is a mistake; the program then has the fences that the PTX ISA requires. */
  readonly model: MemoryModelName;
}

/** Options of a program's run on the machine. */
export interface KernelProgramOptions {
  /** CTAs of a cluster; default the kernel's choice. */
  readonly ctas?: 1 | 2;
  /** Clusters of the grid that share the tiles; default as many as the chip has SMs for. */
  readonly clusters?: number;
  /**
   * Whether the program has the fences and waits that the PTX ISA requires and the kernel's source
   * leaves out; default false.
   */
  readonly isaFences?: boolean;
  /** The schedule of each cluster; default in order. */
  readonly scheduler?: (cluster: number) => Scheduler;
  readonly model?: MemoryModel;
  /** Whether races are looked for; default true. */
  readonly races?: boolean;
  readonly trace?: (event: TraceEvent, cluster: number) => void;
  /** One of the program's mutants, to be run instead. */
  readonly mutant?: ProgramMutant;
}

/** Results of a cluster's run. */
export interface ProgramClusterRun {
  readonly cluster: number;
  readonly findings: readonly Finding[];
  readonly counters: readonly CtaCounters[];
  readonly steps: number;
  readonly clocks: number;
  readonly isComplete: boolean;
  /** Whether the findings, or their absence, hold for every schedule; see `ClusterRun` of the machine. */
  readonly speaksForAllSchedules: boolean;
  readonly schedule: string;
}

/** Exponentials of a run by the unit that computed them, in elements. */
export interface ExponentialSplit {
  /** Scores' exponentials by the special function unit. */
  readonly hardware: number;
  /** Scores' exponentials by the polynomial on the FMA units. */
  readonly polynomial: number;
  /** Exponentials of differences of row maxima (α), by the special function unit. */
  readonly factors: number;
  /** polynomial / (hardware + polynomial); 0 where there are no scores. */
  readonly polynomialShare: number;
}

/** Traffic and number of the rescales of O. */
export interface RescaleTraffic {
  /** Bytes of tensor memory from O to registers and back, for rescales alone. */
  readonly bytesToRegisters: number;
  readonly bytesToTensorMemory: number;
  /** Bytes of O that were read to be normalised and stored. */
  readonly finalBytes: number;
  /** Number of times that a warp asked whether it has to rescale, and that it did. */
  readonly votes: number;
  readonly rescales: number;
}

/** A program made ready for a problem. Clusters do not depend on one another. */
export interface PreparedKernelProgram {
  readonly shape: ProblemShape;
  readonly outFormat: FormatName;
  /** CTAs of a cluster. */
  readonly ctas: 1 | 2;
  /** Clusters that have tiles to work on. */
  readonly clusters: number;
  readonly isaFences: boolean;
  readonly model: MemoryModel;
  readonly rates: UnitRates;
  /** [batch · heads · queries · vDim] patterns in the output's format; filled by the runs. */
  readonly out: Uint16Array;
  /** [batch · heads · queries] fp32 bits, natural logarithm. */
  readonly lse: Uint32Array;
  readonly run: (cluster: number) => ProgramClusterRun;
  /** Whether the mutant's site has been reached so far; true without a mutant. */
  readonly hasMutated: () => boolean;
  /** Exponentials of a run with these counters, by the unit that computed them. */
  readonly exponentials: (counters: CtaCounters) => ExponentialSplit;
  /** Traffic of rescales in a run with these counters. */
  readonly rescales: (counters: CtaCounters) => RescaleTraffic;
}

/** A kernel as the emulated machine executes it: warps, memory, barriers. */
export interface KernelProgram {
  /** Evidence for the execution, a line each; the model has the evidence for the arithmetic. */
  readonly evidence: readonly string[];
  /** The warps of a CTA. */
  readonly warpNames: readonly string[];
  readonly mutants: readonly ProgramMutant[];
  /** As `KernelModel.features`. */
  readonly features: readonly FeatureName[];
  /**
   * Makes the program ready for a problem. Its outputs have the bits of the model with these settings.
   * @throws RequestError for problems that the program does not run
   */
  readonly prepare: (
    problem: Problem,
    settings: ReadonlyMap<string, string>,
    options: KernelProgramOptions,
  ) => PreparedKernelProgram;
}
