import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertAttentionKernel,
  checkKernel,
  type CheckOptions,
  type LawId,
  type RoundRunner,
} from '../../../properties/index.js';
import { RequestError } from '../../../src/request-error.js';
import { variedProblem } from '../laws/try-law.js';

const upTo = (count: number, first = 1) => Array.from({ length: count }, (_, i) => first + i);
const ids = ['determinism', 'query-order', 'within-bound', 'heads-independent'] as const;

/** What becomes of the rounds of a law: from some round on it fails, and of some others nothing can be tried. */
interface Fate {
  readonly failsAt: number;
  readonly declined: readonly number[];
  readonly kind: string;
}

type RoundResult = Awaited<ReturnType<RoundRunner['tryRound']>>;

const lawCase = {
  problem: variedProblem({}, { batch: 1, heads: 1, kvHeads: 1, queries: 1, keys: 1, dim: 1 }),
  choice: 0,
};

/** The result of a round, by the fate of its law. */
function resultOf(id: LawId, round: number, { failsAt, declined, kind }: Fate): RoundResult {
  const seconds = 0.25;
  if (round >= failsAt) {
    const failure = {
      lawCase,
      statement: `${id} fails in ${round}`,
      cause: null,
      hint: null,
      kind: { id: kind, title: kind, equivalents: [] },
      runs: [],
      shrinks: 0,
      regime: 'normal',
      round,
    } as const;
    return { status: 'tried', seconds, sizes: null, widened: [], failure };
  }
  if (declined.includes(round)) return { status: 'unsupported', seconds, reason: `not ${round}` };
  const sizes = { batch: round, heads: 1, groupSize: 1, queries: 1, keys: 9, qkDim: 2, vDim: 2 };
  return {
    status: 'tried',
    seconds,
    sizes,
    widened: round === 2 && id === 'determinism' ? ['fp16', 'bf16'] : [],
    failure: null,
  };
}

const kernel = () => expect.fail('the kernel is not asked');

/** A check of fates, so many rounds at the same time. */
async function checked(
  fates: readonly Fate[],
  { lanes = 1, ...options }: CheckOptions & { readonly lanes?: number },
  check: typeof checkKernel = checkKernel,
) {
  const laws = ids.slice(0, fates.length);
  const asked: string[] = [];
  const shrinks = new Set<number>();
  const progress: (readonly [number, number])[] = [];
  const apart: RoundRunner = {
    lanes,
    tryRound: async (id, round, shrinkSeconds) => {
      asked.push(`${id} ${round}`);
      shrinks.add(shrinkSeconds);
      await Promise.resolve();
      return resultOf(id, round, fates[ids.findIndex((known) => known === id)]);
    },
  };
  const result = await check(
    kernel,
    { formats: ['fp32'] },
    { laws, seed: 11, apart, progress: (...told) => progress.push(told), ...options },
  );
  return { result, asked, progress, shrinks };
}

const fate = (runs: number): fc.Arbitrary<Fate> =>
  fc.record({
    failsAt: fc.integer({ min: 1, max: 2 * runs }),
    declined: fc.subarray(upTo(runs)),
    kind: fc.constantFrom('a', 'b'),
  });
const fates = fc.integer({ min: 1, max: 4 }).chain((runs) =>
  fc.record({
    runs: fc.constant(runs),
    all: fc.array(fate(runs), { minLength: 1, maxLength: 4 }),
    lanes: fc.integer({ min: 1, max: 3 }),
  }),
);

describe('a check whose rounds have known results', () => {
  it('has of each law what its rounds are until it fails, as if laws took turns', async () => {
    await fc.assert(
      fc.asyncProperty(fates, async ({ runs, all, lanes }) => {
        const { result, asked, progress } = await checked(all, { runs, lanes });
        // The rounds that count, in turns.
        const turns = upTo(runs).flatMap((round) =>
          all.flatMap(({ failsAt }, law) => (round <= failsAt ? [{ round, law }] : [])),
        );
        if (lanes === 1)
          expect(asked).toEqual(turns.map(({ round, law }) => `${ids[law]} ${round}`));
        expect(result.runs).toBe(turns.length);
        expect(progress).toEqual(turns.map((_, i) => [i + 1, runs * all.length]));
        expect([result.seed, result.outOfTime]).toEqual([11, false]);
        result.laws.forEach((of, law) => {
          const { failsAt, declined } = all[law];
          const own = turns.filter((turn) => turn.law === law).map(({ round }) => round);
          const refused = own.filter((round) => round < failsAt && declined.includes(round));
          const held = own.filter((round) => round < failsAt && !declined.includes(round));
          const isViolated = failsAt <= runs;
          const isUntried = !isViolated && held.length === 0;
          expect(of).toMatchObject({
            id: ids[law],
            runs: own.length,
            unsupported: refused.length,
            tried: own.length - refused.length,
            seconds: own.length / 4,
            status: isViolated ? 'violated' : isUntried ? 'untried' : 'holds',
            skipped: isUntried
              ? `none of its problems could be tried: not ${own[own.length - 1]}`
              : null,
          });
          const most = held[held.length - 1];
          expect(of.sizes?.batch).toBe(most);
          expect(of.widened).toEqual(law === 0 && held.includes(2) ? ['bf16', 'fp16'] : []);
          const at = turns.findIndex((turn) => turn.law === law && turn.round === failsAt) + 1;
          if (isViolated)
            expect(of.failure).toMatchObject({
              statement: `${ids[law]} fails in ${failsAt}`,
              round: failsAt,
              runsUntil: at,
            });
          else expect(of.failure).toBeNull();
        });
        const isTried = (status: string) =>
          result.laws.filter((law) => law.status === status).length;
        expect(result.pass).toBe(isTried('violated') === 0 && isTried('holds') > 0);
        const isWide = result.laws[0].widened.length > 0;
        expect(result.notes.filter((note) => note.startsWith('outputs for '))).toHaveLength(
          isWide ? 2 : 0,
        );
      }),
      { numRuns: 30 },
    );
  });

  it('is told in an error: how many laws are violated, by how many causes', async () => {
    await fc.assert(
      fc.asyncProperty(fates, async ({ runs, all }) => {
        const outcome = await checked(all, { runs }, assertAttentionKernel).then(
          ({ result }) => result,
          (error: unknown) => error as Error,
        );
        const plain = (await checked(all, { runs })).result;
        const count = (status: string) => plain.laws.filter((law) => law.status === status).length;
        const violated = plain.laws.filter((law) => law.status === 'violated');
        if (plain.pass) {
          expect(outcome).toMatchObject({ pass: true, runs: plain.runs });
          return;
        }
        if (!(outcome instanceof Error)) return expect.fail('nothing is thrown');
        if (violated.length === 0) {
          expect(outcome).toBeInstanceOf(RequestError);
          expect(outcome.message).toContain('nothing was checked');
          return;
        }
        expect(outcome).not.toBeInstanceOf(RequestError);
        const tried = count('holds') + violated.length;
        const causes = new Set(violated.map(({ failure }) => failure!.kind.id)).size;
        const [first, ...rest] = outcome.message.split('\n\n');
        const by =
          causes === violated.length
            ? ''
            : `, apparently by ${causes} ${causes === 1 ? 'cause' : 'causes'}`;
        expect(first.replace(/ in [\d.]+ s\)$/, ')')).toBe(
          `the kernel violates ${violated.length} of ${tried} ${tried === 1 ? 'law' : 'laws'}${by} (seed 11, ${plain.runs} ${plain.runs === 1 ? 'run' : 'runs'})`,
        );
        expect(rest[rest.length - 1]).toBe(
          'The option { seed: 11 } tries the same problems again.',
        );
        for (const { failure } of violated)
          expect(outcome.message).toContain(`${failure!.statement}.`);
      }),
      { numRuns: 20 },
    );
  });

  it('ends where the time is up, and leaves most of it to other laws', async () => {
    const never = { failsAt: 99, declined: [], kind: 'a' };
    const none = await checked([never, never], { runs: 3, seconds: 0 });
    expect(none.asked).toEqual([]);
    expect(none.result).toMatchObject({ outOfTime: true, runs: 0, pass: false });
    expect(none.result.laws.map(({ status, skipped }) => [status, skipped])).toEqual([
      ['untried', 'the check ended before its first problem'],
      ['untried', 'the check ended before its first problem'],
    ]);
    const usual = await checked([never], { runs: 2 });
    expect([...usual.shrinks]).toEqual([10]);
    const short = await checked([never], { runs: 2, seconds: 20, shrinkSeconds: 100 });
    for (const seconds of short.shrinks) {
      expect(seconds).toBeLessThanOrEqual(5);
      expect(seconds).toBeGreaterThanOrEqual(1);
    }
    const least = await checked([never], { runs: 1, seconds: 3, shrinkSeconds: 100 });
    expect([...least.shrinks]).toEqual([1]);
    const most = await checked([never], { runs: 1, seconds: 3, shrinkSeconds: 0.5 });
    expect([...most.shrinks]).toEqual([0.5]);
  });

  it('refuses runs and seeds that are none', async () => {
    const fail = { failsAt: 99, declined: [], kind: 'a' };
    for (const runs of [0, -1, 1.5, NaN, Infinity])
      await expect(checked([fail], { runs })).rejects.toThrow(`runs is ${runs}; give`);
    for (const seed of [0.5, NaN, Infinity])
      await expect(checked([fail], { runs: 1, seed })).rejects.toThrow(`seed is ${seed}; give`);
    for (const seed of [0, -3, 2 ** 40])
      expect((await checked([fail], { runs: 1, seed })).result.seed).toBe(seed);
  });
});

describe('a check that ends with the first failure', () => {
  it('tries in this thread, and no law after one that fails', async () => {
    const calls: string[] = [];
    const broken = () => {
      calls.push('called');
      throw new Error('it is broken');
    };
    const apart: RoundRunner = { lanes: 2, tryRound: () => expect.fail('it is not used') };
    const options = { laws: ids, runs: 2, seed: 1, shrinkSeconds: 0, bail: true, apart };
    const result = await checkKernel(broken, { formats: ['fp32'] }, options);
    expect(result.laws.map(({ status }) => status)).toEqual([
      'violated',
      'untried',
      'untried',
      'untried',
    ]);
    expect([result.pass, result.runs, result.laws[0].failure?.runsUntil]).toEqual([false, 1, 1]);
    const all = await checkKernel(
      broken,
      { formats: ['fp32'] },
      { laws: ids, runs: 2, seed: 1, shrinkSeconds: 0 },
    );
    expect(all.laws.map(({ status, failure }) => [status, failure?.runsUntil])).toEqual(
      ids.map((_, i) => ['violated', i + 1]),
    );
  });
});
