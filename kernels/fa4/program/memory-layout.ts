import { tensorMemoryColumns, type SharedMemory } from '../../../src/machine/index.js';
import { RequestError } from '../../../src/request-error.js';
import { tileQueries } from '../configuration.js';
import type { BarrierPlan, ProgramBarriers, ProgramPlan } from './plan.js';
import type { Parity, RingPlace } from './signals.js';

/** Columns of tensor memory that the kernel allocates: all. */
export const allocatedColumns = tensorMemoryColumns;

const bufferAlignment = 1024;
const barrierBytes = 8;
const wordBytes = 4;

/** The addresses of a plan, by allocating its parts in a CTA's shared memory in the kernel's order. */
export function layOut(plan: ProgramPlan, shared: SharedMemory): ProgramPlan {
  const place = (name: string, bytes: number, alignment: number): number => {
    const result = shared.allocate(name, bytes, alignment);
    if (!result.ok) throw new RequestError(`${name}: ${result.violation.message}`);
    return result.address;
  };
  const barriers = Object.fromEntries(
    Object.entries<BarrierPlan>({ ...plan.barriers }).map(([key, barrier]) => {
      const bytes = barrier.offsets.length * barrierBytes;
      const first = place(barrier.name, bytes, barrierBytes);
      const offsets = barrier.offsets.map((_, i) => first + i * barrierBytes);
      return [key, { ...barrier, offsets }];
    }),
  ) as unknown as ProgramBarriers;
  const { stages, q, o, ring, isRingUneven, k, v, overlapsQueries } = plan;
  const tensorAddress = place('tensor address', wordBytes, wordBytes);
  const statistics = stages * tileQueries * wordBytes;
  const scale = place('α and row sums', statistics, 16);
  const maxima = place('row maxima', statistics, 16);
  const staged = overlapsQueries ? null : place('O', stages * o.bytes, bufferAlignment);
  const queryBytes = stages * (overlapsQueries ? Math.max(q.bytes, o.bytes) : q.bytes);
  const queries = place('Q', queryBytes, bufferAlignment);
  const { ringStride } = plan.addresses;
  const ringBytes = isRingUneven ? 2 * k.bytes + v.bytes : ring.layout * ringStride;
  const each = (first: number, step: number): number[] =>
    Array.from({ length: stages }, (_, stage) => first + stage * step);
  return {
    ...plan,
    barriers,
    addresses: {
      ...plan.addresses,
      tensorAddress,
      scale,
      maxima,
      q: each(queries, q.bytes),
      o: each(staged ?? queries, o.bytes),
      ring: place('K/V', ringBytes, bufferAlignment),
    },
  };
}

/**
 * Where a buffer of the K/V ring begins. In an uneven ring the middle one lies further to the right
 * while K, V, K are in the ring, and further to the left while V, K, V are.
 */
export function ringAddress(
  { addresses }: ProgramPlan,
  { index }: RingPlace,
  round: Parity,
): number {
  const { ring, ringStride, ringOffset } = addresses;
  const moved = index === 1 ? ringOffset * (1 - 2 * round) : 0;
  return ring + index * ringStride + moved;
}
