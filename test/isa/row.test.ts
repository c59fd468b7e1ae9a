import { describe, expect, it } from 'vitest';
import { laneRows, row, type Variant } from '../../src/isa/index.js';

const rest = { meaning: 'is', unit: 'alu', evidence: 'isa', section: 'here' } as const;
const namesOf = (variants: readonly Variant[]) => variants.map(({ name }) => name);

describe('a row of the table of instructions', () => {
  it('has a variant for every choice of modifiers, the last one changing first', () => {
    const { variants } = row({
      ...rest,
      syntax: 'op.mode{.ftz}.f32 d, a',
      alternatives: { mode: ['.rn', '.rz'] },
      evaluate: () => (a: number) => a,
    });
    expect(namesOf(variants())).toEqual([
      ...['op.rn.f32', 'op.rn.ftz.f32'],
      ...['op.rz.f32', 'op.rz.ftz.f32'],
    ]);
  });

  it('tells its functions what was chosen, without dots, and nothing for what was left out', () => {
    const seen: unknown[] = [];
    const { variants } = row({
      ...rest,
      syntax: 'op{.rnd}{.xorsign.abs}.f32 d, a',
      alternatives: { rnd: ['.rm'] },
      evaluate: ({ rnd, 'xorsign.abs': sign }) => {
        seen.push([rnd, sign]);
        return (a: number) => a;
      },
    });
    variants();
    expect(seen).toEqual([
      ['', ''],
      ['', 'xorsign.abs'],
      ['rm', ''],
      ['rm', 'xorsign.abs'],
    ]);
  });

  it('is made once, on first use', () => {
    let made = 0;
    const { variants } = row({
      ...rest,
      syntax: 'op.f32 d, a',
      evaluate: () => {
        made++;
        return (a: number) => a;
      },
    });
    expect(made).toBe(0);
    expect(variants()).toBe(variants());
    expect(made).toBe(1);
  });

  it('takes the registers from the types of the name: the first for d, the last for sources', () => {
    const [{ destinations, sources, laneOperations }] = row({
      ...rest,
      syntax: 'cvt.rn.f16x2.f64 d, a, b, {!}c',
      evaluate: () => () => 0,
    }).variants();
    expect({ destinations, sources, laneOperations }).toEqual({
      destinations: [32],
      sources: [64, 64, 'pred'],
      laneOperations: 2,
    });
  });

  it('takes types that the name does not say from `operands`', () => {
    const [{ destinations, sources }] = row({
      ...rest,
      syntax: 'mul.wide.s32 d, a, b',
      operands: { d: 's64' },
      evaluate: () => () => 0n,
    }).variants();
    expect({ destinations, sources }).toEqual({ destinations: [64], sources: [32, 32] });
  });

  it('has a form of one result and one of two for p[|q]', () => {
    const [one, two] = row({
      ...rest,
      syntax: 'setp.lt.s32 p[|q], a, b',
      evaluate: (_, results) => (a: number, b: number) =>
        results === 1 ? Number(a < b) : [Number(a < b), Number(a >= b)],
    }).variants();
    expect([one.destinations, one.evaluate(1, 2)]).toEqual([['pred'], 1]);
    expect([two.destinations, two.evaluate(1, 2)]).toEqual([
      ['pred', 'pred'],
      [1, 0],
    ]);
  });

  it('leaves out what the manual leaves out', () => {
    const { variants } = row({
      ...rest,
      syntax: 'op{.sat}.type d, a',
      alternatives: { type: ['.s32', '.u32'] },
      except: ({ sat, type }) => sat !== '' && type === 'u32',
      evaluate: () => (a: number) => a,
    });
    expect(namesOf(variants())).toEqual(['op.s32', 'op.u32', 'op.sat.s32']);
  });

  it('says of which GPU it has the bits', () => {
    const { variants } = row({
      ...rest,
      syntax: 'op{.ftz}.f32 d, a',
      evidence: ({ ftz }) => (ftz === '' ? 'silicon' : 'isa'),
      evaluate: () => (a: number) => a,
    });
    expect(variants().map(({ source }) => source)).toEqual([
      'PTX ISA, here: op; as on an H200 with driver 580.159.04',
      'PTX ISA, here: op',
    ]);
  });
});

describe('the table of instructions', () => {
  it('has no two rows with the same instruction', () => {
    const keys = laneRows.flatMap((one) =>
      one
        .variants()
        .map(
          ({ name, destinations, sources }) => `${name} ${destinations.join()} ${sources.length}`,
        ),
    );
    expect(keys.length - new Set(keys).size).toBe(0);
  });

  it('has a meaning for each variant, whose name begins with the opcode of the line', () => {
    const meanings = new Set(['moves', 'is', 'chooses', 'decides', 'confirmed', 'loses']);
    for (const { syntax, variants } of laneRows)
      for (const { name, meaning } of variants()) {
        expect(meanings, name).toContain(meaning);
        expect(name.startsWith(syntax.split(/[.{ ]/)[0]), name).toBe(true);
      }
  });
});
