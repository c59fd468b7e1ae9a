import { describe, expect, it } from 'vitest';
import { profileSketch } from '../../src/report/text/profile/render-profile.js';
import { techniqueNamed, type Profile } from '../../src/profile/index.js';

const profile = await techniqueNamed('exp2').run({ range: { from: -1, to: -0.9999 } });

describe('the sketch of a profile', () => {
  it('has a line for each function of each plot, with its largest error, within 80 columns', () => {
    const text = profileSketch(profile);
    const plots = 'plots' in profile ? profile.plots : [];
    expect(plots.length).toBeGreaterThan(0);
    for (const line of text.split('\n')) expect([...line].length).toBeLessThanOrEqual(80);
    for (const { curves } of plots)
      for (const { name, envelope } of curves) {
        const errors = [...envelope.most, ...envelope.least].filter(Number.isFinite).map(Math.abs);
        if (errors.length === 0) continue;
        const line = text.split('\n').find((text) => text.startsWith(`  ${name} `))!;
        expect(line).toContain('█');
        expect(line.endsWith(` ${Math.max(...errors).toExponential(1)}`)).toBe(true);
      }
  });

  it('cuts names and shows where errors are largest', () => {
    const envelope = {
      least: new Float64Array([-4, -1, Infinity, 0]),
      most: new Float64Array([1, 2, -Infinity, 0]),
    };
    const panel = { title: '', scale: 'linear', from: 0, to: 4, boundaries: [] } as const;
    const drawn = {
      plots: [{ panel, quantity: 'e', curves: [{ name: 'n'.repeat(90), envelope }] }],
    };
    const line = profileSketch(drawn as unknown as Profile)
      .split('\n')
      .find((text) => text.includes('█'))!;
    expect(line).toBe(`  ${'n'.repeat(24)}  █▄${' '.repeat(38)}  4.0e+0`);
  });

  it('is nothing for a profile without plots', () => {
    expect(profileSketch({ technique: 'rescale' } as Profile)).toBe('');
  });
});
