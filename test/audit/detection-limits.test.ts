import { describe, expect, it } from 'vitest';
import { attentionOracle, type AttentionReference } from '../../oracles/index.js';
import { encodeProblem } from '../../properties/problems/plain-problem.js';
import { randomValues } from '../../properties/problems/values.js';
import {
  anyKernelArithmetic,
  auditAccuracy,
  elementBounds,
  judgeOutputs,
  KernelBound,
  type ElementBounds,
  type Judgement,
} from '../../src/audit/index.js';
import type { FormatName } from '../../src/formats/index.js';
import type { Problem, Tensor } from '../../src/problem/index.js';
import { sampled, testSeed } from '../setup/effort.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';
import { detectionLimit } from './detection-limit.js';
import { roundingKernel } from './rounding-kernel.js';

const inTurn = turns(import.meta.url);

/** Everything, measured by bisection and printed as docs/theory/tightness.md has it, with LIMITS=all. */
const everything = process.env['LIMITS'] === 'all';

/** A kind of small error of one head: what it makes of an output of size `rms`. */
const errors = {
  scale: (x: number, size: number) => x * (1 + size),
  bias: (x: number, size: number) => x + size,
} as const;
type ErrorKind = keyof typeof errors;

/** How many times the limit an error may be and pass. */
const targets = { bf16: 5, fp16: 5, fp32: 50 } as const;
type Format = keyof typeof targets;

const sizes = { heads: 2, queries: 256, keys: 256 } as const;
/** The head that errs. */
const head = 1;

/** One problem and all that an audit of another output of it need not find again. */
interface Prepared {
  readonly problem: Problem;
  readonly reference: AttentionReference;
  readonly bounds: ElementBounds;
  readonly out: Float64Array;
  readonly shape: readonly number[];
  readonly lse: Tensor | null;
  readonly format: Format;
}

function prepare(format: Format, dim: number, seed: number): Prepared {
  const { normal } = randomValues(seed);
  const { heads, queries, keys } = sizes;
  const normals = (rows: number) =>
    Float64Array.from({ length: heads * rows * dim }, () => normal());
  const problem = encodeProblem({
    sizes: { batch: 1, kvHeads: heads, groupSize: 1, queries, keys, qkDim: dim, vDim: dim },
    formats: { q: format, k: format, v: format },
    values: { q: normals(queries), k: normals(keys), v: normals(keys) },
    scale: 1 / Math.sqrt(dim),
    causal: false,
    window: null,
    softcap: null,
  });
  const { out, lse } = roundingKernel(problem, { outputFormat: 'fp64', lag: () => 0, tile: 64 });
  const reference = attentionOracle(problem, { accuracy: auditAccuracy(format) });
  const premises = new KernelBound(problem, reference, format);
  const bounds = elementBounds(problem, reference, anyKernelArithmetic(problem, format), premises);
  return { problem, reference, bounds, out: decode(out), shape: out.shape, lse, format };
}

/** The judgement of the output with an error of one head made before it is rounded. */
function judge(given: Prepared, kind: ErrorKind, size: number): Judgement {
  const perHead = given.out.length / sizes.heads;
  const moved = given.out.map((x, i) =>
    Math.floor(i / perHead) === head ? errors[kind](x, size) : x,
  );
  const outputs = { out: encode(moved, given.format, given.shape), lse: given.lse };
  const { reference, bounds } = given;
  return judgeOutputs(given.problem, outputs, { reference, bounds, diagnose: false });
}

/** The smallest error that fails, to within 3 %, and by which test. */
function smallestFound(given: Prepared, kind: ErrorKind, limit: number) {
  let [low, high] = [limit / 4, limit * 2 ** 14];
  let foundBy = '';
  while (high / low > 1.03) {
    const size = Math.sqrt(low * high);
    const { verdict } = judge(given, kind, size);
    if (verdict.pass) low = size;
    else {
      high = size;
      foundBy = verdict.findings[0].test;
    }
  }
  return { size: high, foundBy };
}

const kinds = Object.keys(errors) as ErrorKind[];
const everyCase = (Object.keys(targets) as Format[]).flatMap((format) =>
  [64, 128].map((dim) => ({ format, dim })),
);
const limitOf = ({ problem, reference, format }: Prepared) =>
  detectionLimit(problem, reference, format satisfies FormatName, head);

describe.runIf(everything)('the smallest error of one head that an audit finds', () => {
  it.each(everyCase)('$format, dimension $dim', ({ format, dim }) => {
    const given = prepare(format, dim, 20_261_122);
    const limit = limitOf(given);
    for (const kind of kinds) {
      const { size, foundBy } = smallestFound(given, kind, limit[kind]);
      console.log(
        `| ${kind} | ${format} | ${dim} | ${size.toExponential(2)} | ${limit[kind].toExponential(2)} | ${(size / limit[kind]).toFixed(1)} | ${foundBy} |`,
      );
      expect.soft(size / limit[kind]).toBeLessThan(targets[format]);
    }
  });
});

describe.runIf(!everything)('an error of one head near the limit of any test', () => {
  // Of all formats TEST_SEED draws one.
  const smallCases = everyCase.filter(({ dim }) => dim === 64);
  inTurn.each(sampled(smallCases, 1))('is found in $format, dimension $dim', ({ format, dim }) => {
    const given = prepare(format, dim, testSeed);
    const limit = limitOf(given);
    for (const kind of kinds)
      expect(judge(given, kind, targets[format] * limit[kind]).verdict.pass).toBe(false);
  });
});
