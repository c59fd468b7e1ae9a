import { decodeTensor, encodeFromFloat64, formats, type Tensor } from '../../../formats/index.js';
import type { Prologue, RootMeanSquareNorm, Rotary } from '../../../problem/index.js';

/** A tensor with its prologue, as a fault may change it. */
export interface ProloguePart {
  readonly name: string;
  /** [tokens, heads, columns] */
  readonly input: Tensor;
  readonly prologue: Prologue | null;
}

/** A prologue with a fault; null where a part's own cannot have it. */
export interface PrologueFault {
  readonly id: string;
  readonly sentence: string;
  readonly change: (part: ProloguePart, all: readonly ProloguePart[]) => Prologue | null;
}

/** A change of a part's prologue; null where it cannot have the fault. */
export type Change = PrologueFault['change'];

/** A fault with its name, in a clause. */
export function fault(id: string, sentence: string, change: Change): PrologueFault {
  return { id, sentence, change };
}

/** A change of the rotation; `none` leaves it out. */
export function withRotary(
  change: (rotary: Rotary, part: ProloguePart) => Rotary | null | 'none',
): Change {
  return (part) => {
    const { prologue } = part;
    if (prologue === null || prologue.rotary === null) return null;
    const rotary = change(prologue.rotary, part);
    if (rotary === null) return null;
    return { ...prologue, rotary: rotary === 'none' ? null : rotary };
  };
}

/** A change of the norm; `none` leaves it out. */
export function withNorm(
  change: (
    norm: RootMeanSquareNorm,
    part: ProloguePart,
    all: readonly ProloguePart[],
  ) => RootMeanSquareNorm | null | 'none',
): Change {
  return (part, all) => {
    const { prologue } = part;
    if (prologue === null || prologue.norm === null) return null;
    const norm = change(prologue.norm, part, all);
    if (norm === null) return null;
    return { ...prologue, norm: norm === 'none' ? null : norm };
  };
}

/** A table whose numbers are others, in its own format. */
export function mapped(table: Tensor, change: (x: number, i: number) => number): Tensor {
  const data = encodeFromFloat64(formats[table.format], decodeTensor(table).map(change));
  return { ...table, data };
}
