import { expect, it } from 'vitest';
import { listed } from '../../src/words/index.js';

it('lists words as sentences do', () => {
  expect(listed([])).toBe('');
  expect(listed(['a'])).toBe('a');
  expect(listed(['a', 'b'])).toBe('a and b');
  expect(listed(['a', 'b', 'c'])).toBe('a, b and c');
});
