import type { OutputValues } from '../../meaning/certify/index.js';
import type { RealOf, RowPlace } from '../../meaning/contracts/index.js';
import { Idioms, RealDomain } from '../../meaning/domains/index.js';
import { decidedValue, noValue } from '../../meaning/trace/index.js';
import type { ContractOutput } from '../launch/contract-output.js';
import type { FollowedRun } from './followed-run.js';

/** The real values of a run, and the same with idioms taken for functions; null where there are none. */
export interface RealValues {
  readonly kept: RealDomain;
  readonly taken: RealDomain | null;
}

/** The real values of a run, and its idioms. */
export function evaluateRun({ recorder: { trace } }: FollowedRun): RealValues & {
  readonly idioms: Idioms;
} {
  const kept = new RealDomain(trace);
  kept.extend();
  const idioms = new Idioms(trace);
  // Most kernels have none, and need no second pass.
  if (idioms.isAny) {
    const taken = new RealDomain(trace, idioms);
    taken.extend();
    if (idioms.found.length > 0) return { idioms, kept, taken };
  }
  return { idioms, kept, taken: null };
}

/** What an element of a quantity of the contract would be without any rounding; null for one that has no real value. */
export type ContractValue = (
  quantity: string,
  place: RowPlace,
  column: number,
) => ReturnType<RealOf>;

/** The number of an element that is a constant: its bits. */
function constantOf(
  { result }: FollowedRun,
  { tensor, format }: OutputValues,
  element: number,
): number {
  const { bytes } = result.outputs.find(({ name }) => name === tensor)!;
  const view = new DataView(bytes.buffer, bytes.byteOffset + element * format.bytes, format.bytes);
  const words = new DataView(new ArrayBuffer(8));
  for (let i = 0; i < format.bytes; i++) words.setUint8(i, view.getUint8(i));
  return format.decode(words.getUint32(0, true), words.getUint32(4, true));
}

/** A function that reads the quantities of a contract from the real values of a run. */
export function contractValues(
  followed: FollowedRun,
  outputs: readonly ContractOutput[],
): (real: RealDomain) => ContractValue {
  const known = new Map(
    outputs.map(({ name, tensor, elementOf }) => [
      name,
      { elementOf, of: followed.outputs.find((output) => output.tensor === tensor) },
    ]),
  );
  return (real) =>
    (quantity, { batch, head, row }, column) => {
      const found = known.get(quantity);
      if (found?.of === undefined) return null;
      const element = found.elementOf(batch, head, row, column);
      const value = found.of.values[element];
      if (value > decidedValue) return real.of(value);
      return value === noValue ? { high: constantOf(followed, found.of, element), low: 0 } : null;
    };
}
