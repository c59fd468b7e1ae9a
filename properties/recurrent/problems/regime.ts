import type { RecurrentFamily, RecurrentLaw } from '../../../src/problem/index.js';
import type { RandomValues } from '../../problems/index.js';
import type { RecurrentConstraints } from './constraints.js';
import type { AxisSizes } from './axes.js';
import type { DrawnValues } from './draw-values.js';
import type { PlainRecurrence } from './plain-recurrence.js';

/** What a regime changes the values of. */
export interface RegimeDraft {
  /** Ordinary values by name, of the inputs that the problem has. */
  readonly values: DrawnValues;
  readonly sizes: AxisSizes;
  readonly lengths: readonly number[];
  readonly law: RecurrentLaw;
  readonly format: PlainRecurrence['inputs']['q']['format'];
  readonly random: RandomValues;
}

/** A kind of problem of recurrences. */
export interface RecurrentRegime {
  /** What its problems look like, in one line. */
  readonly description: string;
  /** What it is meant to provoke in a kernel, in one line. */
  readonly provokes: string;
  /** Whether a family has such problems; default: every family. */
  readonly suits?: (law: RecurrentLaw, family: RecurrentFamily) => boolean;
  /** The problems that it is drawn from; null where these leave none; default: all. */
  readonly narrow?: (constraints: RecurrentConstraints) => RecurrentConstraints | null;
  /** Lengths of its sequences; default: any. */
  readonly lengths?: (constraints: RecurrentConstraints, random: RandomValues) => readonly number[];
  /** The fewest key dimensions for such lengths; default: 1. */
  readonly leastKeyDim?: (lengths: readonly number[]) => number;
  /** Values in place of ordinary ones; default: none. */
  readonly draw?: (draft: RegimeDraft) => DrawnValues;
  /** Whether a problem, perhaps a simplified one, is of the regime. */
  readonly holds: (plain: PlainRecurrence, chunk: number) => boolean;
}
