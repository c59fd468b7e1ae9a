import { standingOf, type OutputValues } from '../../meaning/certify/index.js';
import type { RealOf, RowPlace } from '../../meaning/contracts/index.js';
import { Idioms, RealDomain } from '../../meaning/domains/index.js';
import { decidedValue, noValue } from '../../meaning/trace/index.js';
import { formatGroupedCount, plainText } from '../../words/index.js';
import type { LaunchContract } from '../launch/contract-of-launch.js';
import type { ContractOutput } from '../launch/contract-output.js';
import type { OutputCertificate } from './certificate.js';
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

/** The elements of a tensor that the contract names: those of its outputs that are views of it; null for none. */
function namedElements(
  tensor: string,
  contract: LaunchContract | null,
): ReadonlySet<number> | null {
  const views = (contract?.outputs ?? []).filter((output) => output.tensor === tensor);
  if (views.length === 0) return null;
  const named = new Set<number>();
  for (const { shape: sizes, elementOf } of views) {
    const [batch, heads, rows, columns] = sizes;
    for (let i = 0; i < batch * heads * rows * columns; i++) {
      const row = Math.floor(i / columns);
      const head = Math.floor(row / rows);
      named.add(elementOf(Math.floor(head / heads), head % heads, row % rows, i % columns));
    }
  }
  return named;
}

/** How many elements of an output are not written, of those that the contract names if it names some: a pool has slots of others. */
export function unwrittenOf(
  { name, coverage: { unwritten } }: Pick<OutputCertificate, 'name' | 'coverage'>,
  { recorder, outputs }: FollowedRun,
  contract: LaunchContract | null,
): number {
  if (unwritten === 0) return 0;
  const named = namedElements(name, contract);
  const values = outputs.find(({ tensor }) => tensor === name);
  if (named === null || values === undefined) return unwritten;
  return [...named].filter((at) => standingOf(recorder, values, at) === 'unwritten').length;
}

/** What of an output the contract does not name, in a clause. */
export function unnamed(
  { name, shape }: Pick<OutputCertificate, 'name' | 'shape'>,
  contract: LaunchContract,
): readonly string[] {
  const named = namedElements(name, contract);
  if (named === null) return [`what ${plainText(name)} is to be, which the contract does not name`];
  const all = shape.reduce((product, size) => product * size, 1);
  const others = all - named.size;
  return others === 0
    ? []
    : [
        `${formatGroupedCount(others, 'element')} of ${plainText(name)}, which the contract does not name`,
      ];
}
