import { describe, expect, it } from 'vitest';
import { attentionOracle } from '../../../../oracles/index.js';
import { auditCacheWrite, judgeOutputs } from '../../../../src/audit/index.js';
import {
  encodeFromFloat64,
  formats,
  tensorScales,
  type Tensor,
} from '../../../../src/formats/index.js';
import { auditedWrite, drawPlan, randomNumbers } from './drawn-plan.js';
import { addresses } from './plain-layouts.js';
import { encodePlain } from './plain-codes.js';
import {
  bufferName,
  plainFactor,
  sizesOf,
  writePlain,
  type Faults,
  type Plan,
  type PlannedScaling,
  type Written,
} from './plain-writer.js';

const scaling: PlannedScaling = {
  code: 'fp32',
  columns: 32,
  layout: 'nhd',
  rule: 'amax',
  maximum: 448,
  division: 'divide',
  floor: null,
  global: 1,
  perHead: true,
};
const plan = drawPlan(5, {
  tokens: 24,
  heads: 2,
  columns: 32,
  blocks: 3,
  blockSize: 8,
  layouts: ['nhd', 'nhd'],
  slots: Array.from({ length: 24 }, (_, i) => i),
  code: 'e4m3',
  scaling,
  spread: 2,
  rope: false,
  norm: false,
});

/** K or V as attention reads them: the stored bits, with the stored factors. */
function stored({ after }: Written, part: number): Tensor {
  const { heads, columns, tokens } = plan;
  const [numbers, factors] = [
    after.get(bufferName(plan, part, false)),
    after.get(bufferName(plan, part, true)),
  ];
  if (numbers === undefined || factors === undefined) throw new Error('no buffer');
  const shape = [1, heads, tokens, columns];
  const data = new Uint8Array(heads * tokens * columns);
  const values = new Float64Array(heads * tokens);
  const all = new Float32Array(factors.buffer);
  for (let head = 0; head < heads; head++)
    for (let token = 0; token < tokens; token++) {
      values[head * tokens + token] = all[addresses.nhd(sizesOf(plan, part, true), token, head, 0)];
      const from = addresses.nhd(sizesOf(plan, part, false), token, head, 0);
      data.set(numbers.subarray(from, from + columns), (head * tokens + token) * columns);
    }
  const scales = tensorScales({ format: 'e4m3', shape }, [
    {
      name: 'block_scale',
      format: 'fp32',
      values,
      shape: [1, heads, tokens, 1],
      blocks: [1, 1, 1, columns],
    },
  ]);
  return { format: 'e4m3', shape, data, scales };
}

/** The verdicts on a write, and on a right kernel that reads what it left. */
function verdicts(of: Plan, faults: Faults) {
  const written = writePlain(of, faults);
  const write = auditCacheWrite(auditedWrite(of, written, { rule: true }));
  const draw = randomNumbers(9);
  const shape = [1, 2, 8, 32];
  const q: Tensor = {
    format: 'bf16',
    shape,
    data: encodeFromFloat64(
      formats.bf16,
      Float64Array.from({ length: 512 }, () => draw() - 0.5),
    ),
  };
  const problem = {
    q,
    k: stored(written, 0),
    v: stored(written, 1),
    scale: 0.25,
    causal: false,
    window: null,
    softcap: null,
  };
  const { quantities } = attentionOracle(problem);
  const exact = quantities.out;
  const out: Tensor = {
    format: 'bf16',
    shape,
    data: encodeFromFloat64(formats.bf16, exact.values),
  };
  const read = judgeOutputs(problem, { out, lse: null });
  return { write: write.verdict, read: read.verdict };
}

describe('an error has one owner', () => {
  it('a right write and a right read pass', () => {
    const { write, read } = verdicts(plan, {});
    expect(write.pass).toBe(true);
    expect(read.pass).toBe(true);
  });

  it.for([
    [
      'factor-maximum',
      { factor: (amax: number) => plainFactor(amax, { ...scaling, maximum: 240 }, 'e4m3') },
    ],
    ['truncation', { encode: (x: number) => encodePlain('e4m3', x, true) }],
    ['head-order', { row: (part: number, token: number, head: number) => [part, token, 1 - head] }],
  ] as const satisfies readonly (readonly [string, Faults])[])(
    "a writer's fault fails the write and passes the read: %s",
    ([id, faults]) => {
      const { write, read } = verdicts(plan, faults);
      expect(write.pass).toBe(false);
      expect(write.diagnosis?.id).toBe(id);
      expect(read.pass, read.sentence).toBe(true);
    },
  );
});
