import type { FormatName } from '../../../src/formats/index.js';
import type {
  RecurrentGradientInputs,
  RecurrentProblem,
  RecurrentResults,
} from '../../../src/problem/index.js';
import type { RecurrentArithmetic, RecurrentValue } from '../arithmetic.js';
import type { GradientChange } from '../chunk-gradients.js';
import type { ChunkChange } from '../chunk-parts.js';
import type { TokenOperation } from '../context.js';
import type { GateChange } from '../gates/change.js';
import type { Mamba2Change } from '../mamba2/change.js';

/** An object without some of its members. */
export function without<T extends object, Name extends keyof T>(
  object: T,
  ...names: readonly Name[]
): Omit<T, Name> {
  const left = Object.entries(object).filter(([name]) => !names.includes(name as Name));
  return Object.fromEntries(left) as Omit<T, Name>;
}

/** What a run of a problem has of its own; a change of chunks is of the chunked form, an order of the recurrent. */
export interface FaultyRun {
  readonly form?: RecurrentArithmetic['form'];
  readonly order?: readonly TokenOperation[];
  readonly change?: ChunkChange;
  readonly changeGradients?: GradientChange;
  /** Formats that values are rounded to, to nearest, before a kernel's own rounding. */
  readonly formats?: Readonly<Partial<Record<RecurrentValue, FormatName>>>;
  /** Of a Mamba-2 problem. */
  readonly mamba2?: Mamba2Change;
  /** Of a problem whose gates or write strengths are made. */
  readonly gates?: GateChange | undefined;
  /** Default: those that are given. */
  readonly gradientInputs?: RecurrentGradientInputs;
}

/** Runs a problem by the kernel at hand. */
export type Execute = (
  problem: RecurrentProblem,
  run?: FaultyRun,
) => RecurrentResults<Float64Array>;

/** What a fault works on. */
export interface FaultSetting {
  readonly problem: RecurrentProblem;
  /** Tokens of the kernel's chunks, also where it has none: 64. */
  readonly chunk: number;
  readonly gradientInputs?: RecurrentGradientInputs | undefined;
}

/** A fault that a kernel of linear attention may have. */
export interface RecurrentFault {
  readonly id: string;
  /** A clause without a full stop. */
  readonly sentence: string;
  /** Whether it shows in gradients alone. */
  readonly isOfGradients: boolean;
  /** Whether it is of what lies around a recurrence: of Mamba-2's steps, or of gates that a kernel makes. The others see the recurrence alone. */
  readonly isOutside?: boolean;
  /** Whether a kernel can have it on such a problem; that need not change its results. */
  readonly appliesTo: (setting: FaultSetting) => boolean;
  /**
   * What a kernel with the fault computes, from runs of problems by the kernel at hand. A result that it leaves out is not known.
   */
  readonly run: (setting: FaultSetting, execute: Execute) => RecurrentResults<Float64Array>;
}

/** A fault that changes the problem. */
export function problemFault(
  id: string,
  sentence: string,
  appliesTo: RecurrentFault['appliesTo'],
  change: (setting: FaultSetting) => RecurrentProblem,
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    appliesTo,
    run: (setting, execute) => execute(change(setting)),
  };
}

/** A fault that changes how a problem is run; the change is made anew for each run. */
export function runFault(
  id: string,
  sentence: string,
  appliesTo: RecurrentFault['appliesTo'],
  run: (setting: FaultSetting) => FaultyRun,
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    appliesTo,
    run: (setting, execute) => execute(setting.problem, run(setting)),
  };
}

/** A fault that changes results. */
export function resultFault(
  id: string,
  sentence: string,
  appliesTo: RecurrentFault['appliesTo'],
  change: (
    results: RecurrentResults<Float64Array>,
    setting: FaultSetting,
  ) => RecurrentResults<Float64Array>,
): RecurrentFault {
  return {
    id,
    sentence,
    isOfGradients: false,
    appliesTo,
    run: (setting, execute) => change(execute(setting.problem), setting),
  };
}

/** A fault of the backward pass alone, of gradients that are given. */
export function gradientFault(fault: RecurrentFault): RecurrentFault {
  return {
    ...fault,
    isOfGradients: true,
    appliesTo: (setting) => setting.gradientInputs !== undefined && fault.appliesTo(setting),
    run(setting, execute) {
      const gradients = without(fault.run(setting, execute), 'out', 'final_state');
      const { out, final_state } = execute(setting.problem);
      return { ...gradients, ...(out && { out }), ...(final_state && { final_state }) };
    },
  };
}
