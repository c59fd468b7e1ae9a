import { describe, expect, it } from 'vitest';
import { runBody } from './run-body.js';

const dependencesOf = async (body: string, options = {}) => {
  const { result, kinds } = await runBody(body, options);
  const { dependences, speaksForAllSchedules } = result;
  const sites = dependences.map(({ accesses }) =>
    accesses.map(({ site }) => /: (\w+)/.exec(site)![1]).join(' '),
  );
  return { kinds, sites, speaksForAllSchedules };
};

describe('a run tells what made it speak for one schedule', () => {
  it.each([
    ['atomic operations of two warps', '@%p1 atom.global.add.u32 %r4, [%rd0], 1;', ['atom atom']],
    [
      'a flag that is looked at once',
      '@%p0 st.relaxed.gpu.global.u32 [%rd0], 1;\n  @!%p0 ld.relaxed.gpu.global.u32 %r4, [%rd0];',
      ['st ld'],
    ],
  ])('%s', async (_, body, expected) => {
    const lane = 'and.b32 %r3, %r0, 31;\n  setp.eq.u32 %p1, %r3, 0;\n';
    const { kinds, sites, speaksForAllSchedules } = await dependencesOf(lane + body);
    expect(kinds).toEqual([]);
    expect(sites).toEqual(expected);
    expect(speaksForAllSchedules).toBe(false);
  });

  it('between CTAs, once for the places of all of them', async () => {
    const body = '@%p0 atom.global.add.u32 %r4, [%rd0], 1;';
    const { sites } = await dependencesOf(body, { ctas: 4 });
    expect(sites).toEqual(['atom atom']);
  });

  it('and nothing where an order is there', async () => {
    const body = `@%p0 atom.global.add.u32 %r4, [%rd0], 1;
  bar.sync 0;
  setp.eq.u32 %p1, %r0, 32;
  @%p1 atom.global.add.u32 %r4, [%rd0], 1;`;
    expect(await dependencesOf(body)).toEqual({
      kinds: [],
      sites: [],
      speaksForAllSchedules: true,
    });
  });
});
