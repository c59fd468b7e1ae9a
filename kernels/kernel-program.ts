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

/** One mistake in how a program's warps wait for one another. */
export interface ProgramMutant {
  /** As `remove: K/V empty: load waits`; no two of a program have the same. */
  readonly id: string;
  /** The instructions that the mistake is about. */
  readonly site: string;
  readonly kind: string;
  readonly description: string;
  /** Whether it changes anything in a pair of CTAs only. */
  readonly needsPair: boolean;
  /** The memory model in which it is one; the program then has the fences that the PTX ISA asks for. */
  readonly model: MemoryModelName;
}

/** How a program is run on the machine. */
export interface KernelProgramOptions {
  /** CTAs of a cluster; default what the kernel would choose. */
  readonly ctas?: 1 | 2;
  /** Clusters of the grid that share the tiles out; default as many as the chip has SMs for. */
  readonly clusters?: number;
  /**
   * Whether the fences and waits are there that the PTX ISA asks for and the kernel's source leaves out;
   * default false.
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

/** What a cluster has done. */
export interface ProgramClusterRun {
  readonly cluster: number;
  readonly findings: readonly Finding[];
  readonly counters: readonly CtaCounters[];
  readonly steps: number;
  readonly clocks: number;
  readonly isComplete: boolean;
  /** Whether what was found, or was not, holds for every schedule; see `ClusterRun` of the machine. */
  readonly speaksForAllSchedules: boolean;
  readonly schedule: string;
}

/** Who computed the exponentials of a run, in elements. */
export interface ExponentialSplit {
  /** Of the scores, by the special function unit. */
  readonly hardware: number;
  /** Of the scores, by the polynomial on the FMA units. */
  readonly polynomial: number;
  /** Of the differences of row maxima (α), by the special function unit. */
  readonly factors: number;
  /** polynomial / (hardware + polynomial); 0 where there are no scores. */
  readonly polynomialShare: number;
}

/** What rescaling O has moved and how often it was done. */
export interface RescaleTraffic {
  /** Bytes of tensor memory from O to registers and back, for rescales alone. */
  readonly bytesToRegisters: number;
  readonly bytesToTensorMemory: number;
  /** Bytes of O that were read to be normalised and stored. */
  readonly finalBytes: number;
  /** How often a warp asked whether it has to rescale, and how often it did. */
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
  /** Whether the mutant's place has come by so far; true where there is none to look for. */
  readonly hasMutated: () => boolean;
  /** Who computed the exponentials of a run with these counters. */
  readonly exponentials: (counters: CtaCounters) => ExponentialSplit;
  /** What rescales moved in it. */
  readonly rescales: (counters: CtaCounters) => RescaleTraffic;
}

/** A kernel as the emulated machine executes it: warps, memory, barriers. */
export interface KernelProgram {
  /** What the execution rests on, a line each; what the arithmetic rests on the model says. */
  readonly evidence: readonly string[];
  /** The warps of a CTA. */
  readonly warpNames: readonly string[];
  readonly mutants: readonly ProgramMutant[];
  /** As `KernelModel.features`. */
  readonly features: readonly FeatureName[];
  /**
   * Makes the program ready for a problem. Its outputs have the bits of the model with these settings.
   * @throws RequestError for what the program does not run
   */
  readonly prepare: (
    problem: Problem,
    settings: ReadonlyMap<string, string>,
    options: KernelProgramOptions,
  ) => PreparedKernelProgram;
}
