import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  exploreLaunch,
  holdsOf,
  runExplored,
  type Exploration,
} from '../../../src/ptx/explore/index.js';
import { prepareLaunch, type PreparedLaunch } from '../../../src/ptx/run/index.js';
import { parsePtx } from '../../../src/ptx/syntax/index.js';
import { launchBody, type BodyOptions } from '../run/run-body.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

/** %p1 holds for the first lane of each warp, %r5 is the warp's number in its CTA. */
const lanes = `and.b32 %r3, %r0, 31;
  setp.eq.u32 %p1, %r3, 0;
  shr.u32 %r5, %r0, 5;
  setp.eq.u32 %p2, %r5, 0;
  and.pred %p2, %p2, %p1;
  setp.eq.u32 %p3, %r5, 1;
  and.pred %p3, %p3, %p1;`;

async function prepared(body: string, options: BodyOptions = {}): Promise<PreparedLaunch> {
  const { ptx, launch } = await launchBody(`${lanes}\n${body}`, options);
  return prepareLaunch(parsePtx(ptx), launch, { file: 'kernel.ptx' });
}

async function explored(
  body: string,
  options: BodyOptions = {},
  mostRuns = 500,
): Promise<Exploration & { readonly launch: PreparedLaunch }> {
  const launch = await prepared(body, options);
  const outputs = ['out', 'in'];
  const exploration = exploreLaunch(launch, { ctas: options.cluster ?? 1, outputs, mostRuns });
  return { ...exploration, launch };
}

describe('the exploration of a kernel', () => {
  it('is one run where the first speaks for all schedules', async () => {
    const { runs, isExhausted, results } = await explored('st.global.u32 [%rd1], %r0;');
    expect({ runs, isExhausted, results: results.length }).toEqual({
      runs: 1,
      isExhausted: true,
      results: 1,
    });
  });

  it('has both orders of two atomics, and ends', async () => {
    const body = '@%p1 atom.global.add.u32 %r4, [%rd2], 1;\n  @%p1 st.global.u32 [%rd1], %r4;';
    const { runs, isExhausted, results, findings } = await explored(body);
    expect({ isExhausted, results: results.length, findings }).toEqual({
      isExhausted: true,
      results: 2,
      findings: [],
    });
    expect(runs).toBeLessThanOrEqual(4);
  });

  it('has one result where the order of atomics does not matter', async () => {
    const { isExhausted, results } = await explored('@%p1 red.global.add.u32 [%rd2], 1;', {
      ctas: 2,
    });
    expect({ isExhausted, results: results.length }).toEqual({ isExhausted: true, results: 1 });
  });

  it('finds a race that only another order shows, and gives its schedule again', async () => {
    // Warp 1 writes what warp 0 has written before only where it comes first to the flag.
    const body = `@%p2 st.global.u32 [%rd0], %r0;
  mov.u32 %r4, 1;
  @%p2 st.relaxed.gpu.global.u32 [%rd2], %r4;
  mov.u32 %r6, 1;
  @%p3 ld.relaxed.gpu.global.u32 %r6, [%rd2];
  setp.eq.u32 %p4, %r6, 0;
  @%p4 st.global.u32 [%rd0], %r4;`;
    const { findings, launch, isExhausted, left } = await explored(body);
    // What a race comes to the other way round has not been run.
    expect(isExhausted).toBe(false);
    expect(left).toEqual(['what an illegal act comes to in another order']);
    expect(findings.map(({ value }) => value.kind)).toEqual(['race']);
    const [{ schedule, value }] = findings;
    expect(schedule).toMatch(/^explored:\d+-\d+/);
    const again = runExplored(launch, 1, holdsOf(schedule)!);
    expect(again.findings.map(({ message }) => message)).toContain(value.message);
  });

  inTurn('finds a lock that is released too early', async () => {
    // Who gets the lock second adds in vain: the first reads, releases, and writes then.
    const body = `@!%p1 bra DONE;
LOCK:
  atom.acquire.gpu.global.cas.b32 %r6, [%rd2], 0, 1;
  setp.ne.u32 %p4, %r6, 0;
  @%p4 bra LOCK;
  ld.relaxed.gpu.global.u32 %r7, [%rd2+4];
  atom.release.gpu.global.exch.b32 %r6, [%rd2], 0;
  add.u32 %r7, %r7, 1;
  st.relaxed.gpu.global.u32 [%rd2+4], %r7;
DONE:`;
    const { results } = await explored(body, {}, 100);
    expect(results.length).toBeGreaterThan(1);
    const right = body.replace(/(atom\.release.*\n)([^]*)(DONE:)/, '$2$1$3');
    const mended = await explored(right, {}, 100);
    expect(mended.results).toHaveLength(1);
  });

  inTurn('finds a deadlock of some schedules only', async () => {
    // Two locks, taken in another order by the other warp: in turns nobody waits.
    const body = `@!%p1 bra DONE;
  setp.eq.u32 %p5, %r5, 0;
  selp.u32 %r8, 0, 8, %p5;
  selp.u32 %r9, 8, 0, %p5;
  cvt.u64.u32 %rd3, %r8;
  add.u64 %rd3, %rd3, %rd2;
  cvt.u64.u32 %rd4, %r9;
  add.u64 %rd4, %rd4, %rd2;
FIRST:
  atom.acquire.gpu.global.cas.b32 %r6, [%rd3], 0, 1;
  setp.ne.u32 %p4, %r6, 0;
  @%p4 bra FIRST;
SECOND:
  atom.acquire.gpu.global.cas.b32 %r6, [%rd4], 0, 1;
  setp.ne.u32 %p4, %r6, 0;
  @%p4 bra SECOND;
  atom.release.gpu.global.exch.b32 %r6, [%rd4], 0;
  atom.release.gpu.global.exch.b32 %r6, [%rd3], 0;
DONE:`;
    const { incomplete, findings } = await explored(body, {}, 30);
    expect(incomplete?.schedule).toMatch(/^explored:/);
    expect(findings.map(({ value }) => value.kind)).toEqual(['deadlock']);
  });

  it('has both answers of a test of a barrier', async () => {
    const body = `@%p0 mbarrier.init.shared.b64 [bar], 1;
  bar.sync 0;
  @%p3 mbarrier.arrive.shared.b64 %rd5, [bar];
  mov.u32 %r6, 7;
  @!%p2 bra DONE;
  mbarrier.test_wait.parity.shared.b64 %p4, [bar], 0;
  selp.u32 %r6, 1, 0, %p4;
DONE:
  st.global.u32 [%rd1], %r6;`;
    const { isExhausted, results } = await explored(body, {
      declarations: '.shared .align 8 .b64 bar;',
    });
    expect({ isExhausted, results: results.length }).toEqual({ isExhausted: true, results: 2 });
  });

  it('says that launches which running clusters cancel are left out', async () => {
    const body = `@%p0 mbarrier.init.shared::cta.b64 [bar], 1;
  bar.sync 0;
  mov.u32 %r6, bar;
  mov.u32 %r7, answer;
  @%p0 mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%r6], 16;
  @%p0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r7], [%r6];
  @%p2 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r6], 0;`;
    const { isExhausted, left } = await explored(body, {
      declarations: '.shared .align 16 .b8 answer[16];\n.shared .align 8 .b64 bar;',
      target: 'sm_100a',
      ctas: 2,
    });
    expect({ isExhausted, left }).toEqual({
      isExhausted: false,
      left: ['which launches that have not started are cancelled'],
    });
  });

  it('stops after as many runs as it was given, and says so', async () => {
    const body = '@%p1 atom.global.add.u32 %r4, [%rd2], 1;\n  @%p1 st.global.u32 [%rd1], %r4;';
    const { runs, isExhausted } = await explored(body, { ctas: 3 }, 5);
    expect({ runs, isExhausted }).toEqual({ runs: 5, isExhausted: false });
  });
});

/** What an agent does to one of two words; it keeps what it gets. */
const operations = {
  add: {
    ptx: (word: number) => `atom.relaxed.gpu.global.add.u32 %r6, [%rd2+${4 * word}], 1;`,
    run: (memory: number[], word: number) => memory[word]++,
  },
  double: {
    ptx: (word: number) => `atom.relaxed.gpu.global.max.u32 %r6, [%rd2+${4 * word}], 5;`,
    run: (memory: number[], word: number) => {
      const old = memory[word];
      memory[word] = Math.max(old, 5);
      return old;
    },
  },
  load: {
    ptx: (word: number) => `ld.relaxed.gpu.global.u32 %r6, [%rd2+${4 * word}];`,
    run: (memory: number[], word: number) => memory[word],
  },
  store: {
    ptx: (word: number) => `st.relaxed.gpu.global.u32 [%rd2+${4 * word}], 3;`,
    run: (memory: number[], word: number) => {
      memory[word] = 3;
      return 9;
    },
  },
} as const;

interface Act {
  readonly name: keyof typeof operations;
  readonly word: number;
}

/** Everything that any interleaving gives: what each agent got, and the words at the end. */
function bruteForce(agents: readonly (readonly Act[])[]): ReadonlySet<string> {
  const outcomes = new Set<string>();
  const visit = (places: readonly number[], memory: readonly number[], got: readonly string[]) => {
    if (places.every((place, i) => place === agents[i].length)) {
      outcomes.add([...got, ...memory].join(' '));
      return;
    }
    places.forEach((place, i) => {
      if (place === agents[i].length) return;
      const { name, word } = agents[i][place];
      const changed = [...memory];
      const value = operations[name].run(changed, word);
      visit(places.with(i, place + 1), changed, got.with(i, `${got[i]},${value}`));
    });
  };
  visit(
    agents.map(() => 0),
    [0, 0],
    agents.map(() => ''),
  );
  return outcomes;
}

const act = fc.record({
  name: fc.constantFrom(...(Object.keys(operations) as (keyof typeof operations)[])),
  word: fc.integer({ min: 0, max: 1 }),
});

describe('what the exploration comes to', () => {
  inTurn.each([
    ['warps of a CTA', 2, 1],
    ['CTAs', 1, 2],
  ])('is what every interleaving of two %s comes to', async (_, warps, ctas) => {
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(...Array.from({ length: 2 }, () => fc.array(act, { maxLength: 3, minLength: 1 }))),
        async (agents) => {
          const body = agents
            .map((acts, agent) => {
              const isAgent =
                warps === 2 ? `setp.eq.u32 %p4, %r5, ${agent};` : `setp.eq.u32 %p4, %r1, ${agent};`;
              const isFirst = warps === 2 ? '' : 'and.pred %p4, %p4, %p2;';
              const steps = acts.map(
                ({ name, word }, i) => `mov.u32 %r6, 9;
  @%p4 ${operations[name].ptx(word)}
  @%p4 st.global.u32 [%rd0+${4 * (8 * agent + i)}], %r6;`,
              );
              return `${isAgent}\n and.pred %p4, %p4, %p1;\n ${isFirst}\n ${steps.join('\n  ')}`;
            })
            .join('\n');
          const { isExhausted, results, launch, findings } = await explored(body, { ctas });
          expect(findings).toEqual([]);
          expect(isExhausted).toBe(true);
          const seen = results.map(({ schedule }) => {
            const holds = schedule === 'in-turns' ? [] : holdsOf(schedule)!;
            const { tensors } = runExplored(launch, 1, holds);
            const [out, words] = ['out', 'in'].map(
              (name) => new Uint32Array(tensors.get(name)!.slice().buffer),
            );
            const got = agents.map((acts, agent) =>
              acts.map((__, i) => `,${out[8 * agent + i]}`).join(''),
            );
            return [...got, words[0], words[1]].join(' ');
          });
          expect(new Set(seen)).toEqual(bruteForce(agents));
        },
      ),
      { numRuns: 25 },
    );
  });
});
