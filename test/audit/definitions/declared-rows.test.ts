import { describe, expect, it } from 'vitest';
import { createDeclaredRows, usualOrder } from '../../../src/audit/premises/declared-row.js';
import type { PremiseDeclaration } from '../../../src/audit/index.js';
import { formats, round, type FormatName } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { filledProblem, pseudorandom, tensor } from '../../setup/problems.js';
import { Textbook, type At } from '../hypotheses/textbook.js';

const [batch, heads, kvHeads, queries, keys, dim] = [2, 4, 2, 3, 7, 5];
const problemOf = (changes: Partial<Problem> = {}) => {
  const random = pseudorandom(29);
  return filledProblem({ batch, heads, kvHeads, queries, keys, dim }, () => 2 * random(), {
    scale: 0.7,
    causal: true,
    ...changes,
  });
};
const to = (name: FormatName | undefined) => (x: number) => round(formats[name ?? 'fp32'], x);

/** How a plain kernel differs from the usual one. */
interface Slip {
  readonly chunk?: number;
  readonly split?: number;
  readonly addend?: (at: At) => number;
  readonly kept?: (at: At) => number;
  readonly share?: number;
  readonly sink?: { readonly logits: readonly number[]; readonly inLse: boolean };
}

/** One row of a plain kernel of some premises: every operation rounded, one after the other. */
function plainRow(
  problem: Problem,
  row: number,
  declared: PremiseDeclaration,
  slip: Slip = {},
): { out: number[]; lse: number } {
  const book = new Textbook(problem);
  const where = book.rowAt(row);
  const { chunk = 1, split = 64, share = 1, sink } = slip;
  const { scale, softcap } = problem;
  const root = Math.sqrt(Math.abs(scale));
  const name = (format: string | undefined) => format as FormatName | undefined;
  const [ofScores, ofDots, ofSums] = [
    to(name(declared.scores)),
    to(name(declared.qkAccumulator)),
    to(name(declared.pvAccumulator)),
  ];
  const isRooted = declared.scale === 'root-of-both';
  const isOfQuery = declared.scale === 'q-before-rounding';
  const bf16 = to('bf16');
  const q = (t: number) => {
    const x = book.q(where.batch, where.head, where.query, t);
    return isRooted ? bf16(x * root) : isOfQuery ? bf16(x * scale) : x;
  };
  const k = (key: number, t: number) => {
    const x = book.k(where.batch, where.kvHead, key, t);
    return isRooted ? bf16(x * root) : x;
  };
  const seen = Array.from({ length: keys }, (_, key) => key).filter((key) =>
    book.sees({ ...where, key }),
  );
  const scores = seen.map((key) => {
    let dot = 0;
    for (let t = 0; t < dim; t++) {
      dot += q(t) * k(key, t);
      const isFull = declared.qkAccumulator === undefined || (t + 1) % chunk === 0;
      if (isFull || t === dim - 1) dot = ofDots(dot);
    }
    let score = ofScores(dot);
    if (isRooted) score *= Math.sign(scale);
    else if (!isOfQuery) score = ofScores(score * scale);
    if (softcap !== null) score = ofScores(softcap * Math.tanh(score / softcap));
    if (slip.addend !== undefined) score = ofScores(score + slip.addend({ ...where, key }));
    return score;
  });
  const logit = sink?.logits[where.head] ?? -Infinity;
  const sumOf = (list: readonly number[], first = 0) =>
    list.reduce((sum, x) => Math.fround(sum + x), first);
  const maximum = Math.max(logit, ...scores);
  const weights = scores.map((s) => Math.fround(Math.exp(s - maximum)));
  const up = (declared.weightScale as number | undefined) ?? 1;
  const toWeight = to(declared.weights === undefined ? 'bf16' : name(declared.weights));
  const rounded = (p: number) => toWeight(p * up) / up;
  const total = sumOf(
    declared.rowSum === 'after-rounding' ? weights.map(rounded) : weights,
    logit === -Infinity ? 0 : Math.fround(Math.exp(logit - maximum)),
  );
  const dividesFirst = declared.scores !== undefined;
  const applied = weights.map((p, j) => {
    const w = dividesFirst ? rounded(p / total) : rounded(p);
    return ((slip.kept?.({ ...where, key: seen[j] }) ?? 1) * w) / share;
  });
  const out = Array.from({ length: dim }, (_, c) => {
    let [all, sum] = [0, 0];
    seen.forEach((key, j) => {
      sum += applied[j] * book.v(where.batch, where.kvHead, key, c);
      const isLast = j === seen.length - 1;
      const isFull = declared.pvAccumulator === undefined || (j + 1) % chunk === 0;
      if (isFull || isLast) sum = ofSums(sum);
      if (!isLast && (declared.partials === undefined || (j + 1) % split !== 0)) return;
      const part = dividesFirst ? sum : sum / total;
      all += declared.partials === undefined ? part : to(name(declared.partials))(part);
      sum = 0;
    });
    return declared.outputRounding === 'truncated'
      ? round(formats.bf16, all, { rounding: 'toward-zero' })
      : bf16(all);
  });
  if (logit > -Infinity && sink?.inLse === false) {
    const own = Math.max(...scores);
    return { out, lse: own + Math.log(sumOf(scores.map((s) => Math.fround(Math.exp(s - own))))) };
  }
  return { out, lse: maximum + Math.log(total) };
}

function expectPlain(problem: Problem, declared: PremiseDeclaration, slip: Slip = {}): void {
  const { shape } = new Textbook(problem);
  const { chunk = usualOrder.chunk, split = usualOrder.split } = slip;
  const rowOf = createDeclaredRows(problem, shape, 'bf16', declared, { chunk, split });
  for (let row = 0; row < batch * heads * queries; row++) {
    const { out, lse } = rowOf(row);
    const expected = plainRow(problem, row, declared, slip);
    expect([...out]).toEqual(expected.out);
    expect(lse).toBe(expected.lse);
  }
}

describe('rows as a plain kernel of declared premises has them', () => {
  const declarations: readonly PremiseDeclaration[] = [
    {},
    { scores: 'bf16' },
    { scores: 'fp16', scale: 'root-of-both' },
    { scale: 'root-of-both' },
    { scale: 'q-before-rounding' },
    { weights: 'fp16' },
    { weights: 'e4m3', weightScale: 256 },
    { rowSum: 'after-rounding' },
    { outputRounding: 'truncated' },
    { scores: 'bf16', outputRounding: 'truncated' },
  ];
  it.each(declarations)('%j', (declared) => {
    expectPlain(problemOf(), declared);
    expectPlain(problemOf({ scale: -0.4, softcap: 1.2 }), declared);
  });

  it.each([1, 2, 3])('rounds sums after every %i products', (chunk) => {
    expectPlain(problemOf(), { qkAccumulator: 'fp16' }, { chunk });
    expectPlain(problemOf(), { pvAccumulator: 'bf16' }, { chunk });
    expectPlain(problemOf(), { qkAccumulator: 'bf16', pvAccumulator: 'fp16' }, { chunk });
  });

  it.each([1, 2, 3, 7])('rounds what every %i keys come to', (split) => {
    expectPlain(problemOf(), { partials: 'bf16' }, { split });
    expectPlain(problemOf({ causal: false }), { partials: 'fp16' }, { split });
  });

  it('adds biases, sinks and dropout where kernels do', () => {
    const bias = tensor('fp32', [keys], (i) => 0.3 * i - 1);
    const addend = ({ key }: At) => Math.fround(0.3 * key - 1);
    for (const declared of [{}, { scores: 'bf16' }] as const)
      expectPlain(problemOf({ bias }), declared, { addend });
    const logits = [0.5, -1, 3, -Infinity];
    for (const inLse of [true, false])
      expectPlain(
        problemOf({ sink: { logits: tensor('fp32', [heads], (i) => logits[i]), inLse } }),
        {},
        { sink: { logits, inLse } },
      );
    const data = Uint8Array.from({ length: queries * keys }, (_, i) => (i % 3 === 0 ? 0 : 1));
    const dropout = { kept: { shape: [queries, keys], data }, probability: 0.25 };
    const kept = ({ query, key }: At) => data[query * keys + key];
    expectPlain(problemOf({ dropout }), {}, { kept, share: 0.75 });
  });

  it('rounds to one of the two neighbours by chance, in proportion to the distance', () => {
    const problem = problemOf();
    const { shape } = new Textbook(problem);
    const exactly = createDeclaredRows(problem, shape, 'fp64', {});
    const chance = createDeclaredRows(problem, shape, 'bf16', { outputRounding: 'stochastic' });
    let [sum, ups, count] = [0, 0, 0];
    for (let row = 0; row < batch * heads * queries; row++) {
      const out = chance(row).out;
      exactly(row).out.forEach((x, c) => {
        const low = round(formats.bf16, x, { rounding: 'down' });
        const high = round(formats.bf16, x, { rounding: 'up' });
        expect([low, high]).toContain(out[c]);
        sum += (x - low) / (high - low);
        ups += out[c] === high ? 1 : 0;
        count++;
      });
    }
    // Of 120 numbers, a standard deviation of the ups is below 6.
    expect(Math.abs(ups - sum)).toBeLessThan(24);
    expect(count).toBe(120);
  });
});
