import { describe, expect } from 'vitest';
import { auditOutputs, type Audit, type JudgedElements } from '../../../src/audit/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { testSeed } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { filledProblem, tensor, uniformNumbers } from '../../setup/problems.js';

const inTurn = turns(import.meta.url);

const frame = { heads: 2, kvHeads: 1, queries: 140, keys: 140, dim: 8 };
const uniform = uniformNumbers(testSeed);
const normal = () => uniform() * 4 - 2;

function outputsOf(problem: Problem, change: (row: number) => number) {
  const exact = attentionOracle(problem).quantities.out;
  const values = exact.values.map((x, i) => x * change(Math.floor(i / frame.dim)));
  return {
    out: {
      format: 'bf16',
      shape: [1, frame.heads, frame.queries, frame.dim],
      data: encodeFromFloat64(formats.bf16, values),
    },
    lse: null,
  } as const;
}

interface Result {
  readonly audit: Audit;
  readonly judged: JudgedElements;
  readonly visited: readonly number[];
}

function run(problem: Problem, change: (row: number) => number, partEffort?: number): Result {
  let judged: JudgedElements | null = null;
  const visited: number[] = [];
  const audit = auditOutputs(problem, outputsOf(problem, change), {
    ...(partEffort === undefined ? {} : { partEffort }),
    onElements: (elements) => (judged = elements),
    onBounds: ({ firstRow, rows }) => visited.push(firstRow, rows),
    diagnose: false,
  });
  return { audit, judged: judged!, visited };
}

/** All numbers of a value, by their paths. */
function numbersOf(value: unknown, path = ''): [string, number][] {
  if (typeof value === 'number') return [[path, value]];
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(([key, one]) => numbersOf(one, `${path}/${key}`));
}

function expectSame(divided: Result, whole: Result): void {
  const { reference, bounds, rows } = divided.judged;
  const other = whole.judged;
  expect(reference.quantities).toEqual(other.reference.quantities);
  expect(reference.level).toEqual(other.reference.level);
  expect(reference.denominator).toEqual(other.reference.denominator);
  expect(bounds).toEqual(other.bounds);
  expect(rows).toEqual(other.rows);
  expect(divided.visited).toEqual(whole.visited);
  expect(divided.audit.verdict.findings.map(({ test }) => test)).toEqual(
    whole.audit.verdict.findings.map(({ test }) => test),
  );
  // Sums of a head are added up in another order, and the largest value is that of a head.
  const of = ({ audit }: Result) => numbersOf({ ...audit, shape: null });
  const expected = new Map(of(whole));
  for (const [path, number] of of(divided)) {
    const wanted = expected.get(path)!;
    const near = Math.abs(number - wanted) <= 1e-9 * Math.abs(wanted);
    expect(near || Object.is(number, wanted), `${path}: ${number}, ${wanted}`).toBe(true);
  }
}

const problems: Readonly<Record<string, Partial<Problem>>> = {
  plain: {},
  causal: { causal: true },
  'with bias and slopes': {
    causal: true,
    bias: tensor('fp32', [1, 2, frame.queries, frame.keys], normal),
    alibiSlopes: tensor('fp32', [2], () => 0.25),
  },
};

describe('an audit in parts', () => {
  for (const [name, features] of Object.entries(problems))
    inTurn(`finds what an audit of the whole finds: ${name}`, () => {
      const problem = filledProblem(frame, normal, features);
      const right = () => 1;
      const divided = run(problem, right, 1);
      expect(divided.audit.verdict.findings).toEqual([]);
      expectSame(divided, run(problem, right));
    });

  inTurn('finds the same faults in the same places', () => {
    const problem = filledProblem(frame, normal, { causal: true });
    // The second head, from a row within a tile on.
    const wrong = (row: number) => (row >= 220 ? 1.03 : 1);
    const divided = run(problem, wrong, 1);
    expect(divided.audit.verdict.pass).toBe(false);
    expectSame(divided, run(problem, wrong));
  });
});
