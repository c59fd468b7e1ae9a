import { expect, it } from 'vitest';
import { areMorallyStrong, Stamp } from '../../../src/machine/ordering/index.js';

const common = {
  chain: 1,
  time: 2,
  kind: 'write',
  proxy: 'generic',
  site: '',
  who: '',
  step: 3,
} as const;

it('two accesses are morally strong if both are strong and the scope of each includes the other', () => {
  const scopes = [undefined, 'cta', 'cluster', 'gpu', 'sys'] as const;
  for (const scope of scopes)
    for (const otherScope of scopes)
      for (const otherCta of [0, 1]) {
        const one = new Stamp({ ...common, scope, cta: 0 });
        const other = new Stamp({ ...common, scope: otherScope, cta: otherCta });
        const areStrong = scope !== undefined && otherScope !== undefined;
        const isWithinCta = scope === 'cta' || otherScope === 'cta';
        const expected = areStrong && (!isWithinCta || otherCta === 0);
        expect(areMorallyStrong(one, other)).toBe(expected);
        expect(areMorallyStrong(other, one)).toBe(expected);
        expect(one.isStrong).toBe(scope !== undefined);
      }
});
