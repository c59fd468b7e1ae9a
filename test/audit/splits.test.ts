import { beforeAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import {
  judgeSplits,
  mergeParts,
  requestedRule,
  type JudgedSplits,
  type KernelOutputs,
} from '../../src/audit/index.js';
import { problemMask, problemShape, type Problem } from '../../src/problem/index.js';
import { reportedSplits, splitFindings } from '../../src/report/json/index.js';
import { loadMpfr, type Mpfr, type Real } from '../oracles/mpfr.js';
import { filledProblem, pseudorandom } from '../setup/problems.js';
import { turns } from '../setup/turns.js';
import { decode, encode } from './damage.js';

const inTurn = turns(import.meta.url);

const frame = {
  format: 'bf16',
  batch: 2,
  heads: 2,
  kvHeads: 1,
  queries: 3,
  keys: 90,
  dim: 8,
} as const;
const problem: Problem = filledProblem(frame, pseudorandom(11), { causal: true, scale: 2 });
const splits = 5;
const shape = problemShape(problem);
const rows = [shape.batch, shape.heads, shape.queries] as const;

/** The exact results of the parts of a problem by blocks of so many keys, in fp32. */
function exactParts(of: Problem, block: number): KernelOutputs[] {
  const keys = new Array<number>(shape.batch).fill(shape.keys);
  const { ranges } = requestedRule({ splits, keys, block });
  return ranges.map((keyRanges) => {
    const { out, lse } = attentionOracle({ ...of, keyRanges }).quantities;
    return {
      out: encode(out.values, 'fp32', [...rows, shape.vDim]),
      lse: encode(lse.values, 'fp32', [...rows]),
    };
  });
}

const parts = exactParts(problem, 32);
const exact = attentionOracle(problem).quantities;
const outputs: KernelOutputs = {
  out: encode(exact.out.values, 'bf16', [...rows, shape.vDim]),
  lse: encode(exact.lse.values, 'fp32', [...rows]),
};

function judge(changed: {
  parts?: readonly KernelOutputs[];
  outputs?: KernelOutputs;
  block?: number;
}): JudgedSplits {
  const { parts: given = parts, outputs: merged = outputs, block = 32 } = changed;
  return judgeSplits({ problem, parts: given, outputs: merged, request: { block } });
}

const failing = ({ parts: judged }: JudgedSplits) =>
  judged.filter(({ audit }) => !audit.verdict.pass).map(({ split }) => split);

/** The output that parts come to with such weights. */
function mergedBy(weigh: (lse: number, split: number) => number): KernelOutputs {
  const out = new Float64Array(exact.out.values.length);
  const count = exact.lse.values.length;
  for (let row = 0; row < count; row++) {
    let total = 0;
    parts.forEach((part, split) => {
      const w = weigh(decode(part.lse!)[row]!, split);
      if (w === 0) return;
      total += w;
      for (let c = 0; c < shape.vDim; c++) {
        const at = row * shape.vDim + c;
        out[at]! += w * decode(part.out)[at]!;
      }
    });
    for (let c = 0; c < shape.vDim; c++) out[row * shape.vDim + c]! /= total;
  }
  return { ...outputs, out: encode(out, 'bf16', [...rows, shape.vDim]) };
}

describe('the keys of a part', () => {
  it('are those of its range that the other masks leave', () => {
    const keyRanges = [
      { begin: 10, end: 40 },
      { begin: 88, end: 89 },
    ];
    const whole = problemMask(problem);
    const part = problemMask({ ...problem, keyRanges });
    for (let head = 0; head < 4; head++)
      for (let query = 0; query < shape.queries; query++) {
        const keysOf = (ranges: readonly { begin: number; end: number }[]) =>
          ranges.flatMap(({ begin, end }) =>
            Array.from({ length: end - begin }, (_, i) => begin + i),
          );
        const { begin, end } = keyRanges[head >> 1]!;
        expect(keysOf(part.ranges(head, query))).toEqual(
          keysOf(whole.ranges(head, query)).filter((key) => begin <= key && key < end),
        );
      }
  });

  it.each([
    [[{ begin: 0, end: 4 }], /1 ranges of keys for 2 sequences/],
    [
      [
        { begin: 0, end: 4 },
        { begin: 3, end: 91 },
      ],
      /sequence 1 is 3 to 91; .* 90 keys/,
    ],
    [
      [
        { begin: 5, end: 4 },
        { begin: 3, end: 9 },
      ],
      /sequence 0 is 5 to 4/,
    ],
  ])('are refused where they do not fit: %j', (keyRanges, message) => {
    expect(() => problemShape({ ...problem, keyRanges })).toThrow(message);
  });

  it('by any rule are all keys, each once', () => {
    const keys = [0, 1, 63, 64, 65, 900];
    for (const request of [
      { block: 64 },
      { block: 1 },
      { boundaries: [0, 3, 3, 64, 700, 900] },
      {},
    ]) {
      const { ranges } = requestedRule({ splits, keys, ...request });
      expect(ranges).toHaveLength(splits);
      keys.forEach((count, sequence) => {
        let next = 0;
        for (const part of ranges) {
          const { begin, end } = part[sequence]!;
          expect(end).toBeGreaterThanOrEqual(begin);
          if (end > begin) expect(begin).toBe(next);
          next = Math.max(next, end);
        }
        expect(next).toBe(count);
      });
    }
    expect(() => requestedRule({ splits, keys, boundaries: [0, 900] })).toThrow(/5 parts; give 6/);
    expect(() => requestedRule({ splits: 1, keys, boundaries: [0, 64] })).toThrow(/900 keys/);
  });
});

describe('the exact merge of parts', () => {
  let mpfr: Mpfr;
  beforeAll(async () => {
    mpfr = await loadMpfr();
  });

  it('lies within its radius of what 200 bits say', () => {
    const random = pseudorandom(7);
    const [count, dim, all] = [4, 3, 20];
    for (const spread of [0.1, 10, 400]) {
      const lse = Float64Array.from({ length: count * all }, () => spread * random());
      lse[3] = -Infinity;
      const out = Float64Array.from({ length: count * all * dim }, () => random());
      const merged = mergeParts({ splits: count, rows: all, dim, out, lse });
      mpfr.withPrecision(200, (arena) => {
        for (let row = 0; row < all; row++) {
          const weights = Array.from({ length: count }, (_, s) => {
            const own = lse[s * all + row]!;
            return own === -Infinity ? arena.of(0) : arena.exp(arena.of(own));
          });
          const total = weights.reduce((a, b) => arena.add(a, b));
          const near = (value: number, exactly: Real, radius: number) => {
            const error = arena.distance(exactly, value);
            expect(error).toBeLessThanOrEqual(radius);
            // And not by being wide.
            expect(radius).toBeLessThan(1e-11);
          };
          near(merged.lse[row]!, arena.log(total), merged.lseRadius[row]!);
          for (let c = 0; c < dim; c++) {
            const sum = weights
              .map((w, s) => arena.multiply(w, arena.of(out[(s * all + row) * dim + c]!)))
              .reduce((a, b) => arena.add(a, b));
            const at = row * dim + c;
            near(merged.out[at]!, arena.divide(sum, total), merged.outRadius[at]!);
          }
        }
      });
    }
  });

  it('of nothing with nothing is nothing, whatever is written there', () => {
    const nothing = { splits: 2, rows: 1, dim: 2, lse: new Float64Array(2).fill(-Infinity) };
    const merged = mergeParts({ ...nothing, out: Float64Array.of(0, 0, NaN, 5) });
    expect([...merged.out, ...merged.outRadius]).toEqual([0, 0, 0, 0]);
    expect(merged.lse[0]).toBe(-Infinity);
    const one = mergeParts({
      ...nothing,
      lse: Float64Array.of(-Infinity, 3),
      out: Float64Array.of(NaN, NaN, 4, 5),
    });
    expect([...one.out, ...one.lse]).toEqual([4, 5, 3]);
  });
});

describe('partial results', () => {
  it('that are right pass, empty parts too, and so does their merge', () => {
    const found = judge({});
    expect(failing(found)).toEqual([]);
    expect(found.merge).toMatchObject({ pass: true, causes: [] });
    expect(found.instead).toBeNull();
    // Three blocks of 32 keys in five parts: two have none.
    expect(found.rule.ranges.map(([first]) => first!.end - first!.begin)).toEqual([
      32, 32, 26, 0, 0,
    ]);
    expect(splitFindings(reportedSplits(found), true)).toEqual([]);
  });

  inTurn('of another division than was said are judged by theirs, which is told', () => {
    const found = judge({ parts: exactParts(problem, 64), block: 32 });
    expect(failing(found)).toEqual([]);
    expect(found.rule.words).toContain('64 keys');
    expect(found.instead).toContain('32 keys');
  });

  inTurn.each([
    ['a finite LSE', (lse: number) => (lse === -Infinity ? 0 : lse), (x: number) => x],
    ['NaN', (lse: number) => lse, () => NaN],
  ])('of nothing with %s fail', (_, ofLse, ofOut) => {
    const bad = {
      out: encode(decode(parts[4]!.out).map(ofOut), 'fp32', [...rows, shape.vDim]),
      lse: encode(decode(parts[4]!.lse!).map(ofLse), 'fp32', [...rows]),
    };
    const found = judge({ parts: parts.with(4, bad) });
    expect(failing(found)).toEqual([4]);
  });

  it('of the keys of another part are named', () => {
    const found = judge({ parts: parts.with(1, parts[0]!) });
    expect(failing(found)).toEqual([1]);
    expect(found.parts[1]!.holds).toBe(0);
    const [finding] = splitFindings(reportedSplits(found), true);
    expect(finding!.statement).toMatch(
      /^part 1 of 5 \(keys 32 to 63\) is wrong: it holds the result of part 0/,
    );
  });

  inTurn(
    'of another step are named as stale where the output was merged from them, and else not',
    () => {
      const other = filledProblem(frame, pseudorandom(12), { causal: true, scale: 2 });
      const stale = parts.with(2, exactParts(other, 32)[2]!);
      const all = {
        splits,
        rows: 12,
        dim: 8,
        out: Float64Array.from(stale.flatMap(({ out }) => [...decode(out)])),
        lse: Float64Array.from(stale.flatMap(({ lse }) => [...decode(lse!)])),
      };
      const merged = mergeParts(all);
      const wrong: KernelOutputs = {
        out: encode(merged.out, 'bf16', [...rows, shape.vDim]),
        lse: encode(merged.lse, 'fp32', [...rows]),
      };
      const found = judge({ parts: stale, outputs: wrong });
      expect(failing(found)).toEqual([2]);
      expect(found.merge!.pass).toBe(true);
      expect(splitFindings(reportedSplits(found), false)[0]!.statement).toContain(
        'as one of another step',
      );
      // The right output was not merged from it.
      const unused = judge({ parts: stale });
      expect(unused.merge!.pass).toBe(false);
      for (const { statement } of splitFindings(reportedSplits(unused), true))
        expect(statement).not.toContain('another step');
    },
  );

  inTurn.each([
    ['2^LSE', (lse: number) => 2 ** lse, /2\^LSE/],
    ['equal weights', (lse: number) => (lse === -Infinity ? 0 : 1), /equal weights/],
    [
      'a part left out',
      (lse: number, s: number) => (s === 1 ? 0 : Math.exp(lse)),
      /part 1 was left out/,
    ],
    [
      'a part twice',
      (lse: number, s: number) => (s === 2 ? 2 : 1) * Math.exp(lse),
      /part 2 was counted twice/,
    ],
  ])('merged with %s are named', (_, weigh, words) => {
    const found = judge({ outputs: mergedBy(weigh) });
    expect(failing(found)).toEqual([]);
    expect(found.merge!.pass).toBe(false);
    expect(found.merge!.causes).toHaveLength(1);
    expect(found.merge!.causes[0]).toMatch(words);
  });

  it('merged right pass, by weights of their own as well', () => {
    expect(judge({ outputs: mergedBy((lse) => Math.exp(lse)) }).merge!.pass).toBe(true);
  });

  inTurn('merge with the sink that none of them has', () => {
    const withSink: Problem = {
      ...problem,
      sink: { logits: { format: 'fp32', shape: [2], data: Float32Array.of(3, -1) }, inLse: false },
    };
    const { out, lse } = attentionOracle(withSink).quantities;
    const merged: KernelOutputs = {
      out: encode(out.values, 'bf16', [...rows, shape.vDim]),
      lse: encode(lse.values, 'fp32', [...rows]),
    };
    const judged = (of: Problem) =>
      judgeSplits({ problem: of, parts, outputs: merged, request: { block: 32 } });
    expect(judged(withSink).merge!.pass).toBe(true);
    expect(judged(withSink).parts.every(({ audit }) => audit.verdict.pass)).toBe(true);
    expect(judged(problem).merge!.pass).toBe(false);
  });
});
