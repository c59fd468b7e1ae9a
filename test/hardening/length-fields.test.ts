import { describe, expect, it } from 'vitest';
import { hostileSafetensors } from './hostile-safetensors.js';
import { seededRandom } from './random.js';

/** The longest header that the format allows. */
const longest = 100_000_000n;

describe('the inputs for safetensors', () => {
  const lengths = Array.from({ length: 1200 }, (_, index) => {
    const bytes = hostileSafetensors(seededRandom(1, index));
    if (bytes.length < 8) return null;
    const declared = new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true);
    return { declared, room: BigInt(bytes.length - 8) };
  }).filter((length) => length !== null);

  it('claim headers that are longer than the file, so long that memory would tell', () => {
    // Beyond what any reader may take, and not beyond the limit of the format, which is refused first.
    const telling = lengths.filter(
      ({ declared, room }) => declared > room + (2n << 20n) && declared <= longest,
    );
    expect(telling.length).toBeGreaterThan(20);
  });

  it('and headers beyond the limit of the format, and just beyond the file', () => {
    expect(lengths.some(({ declared }) => declared > longest)).toBe(true);
    expect(lengths.some(({ declared, room }) => declared === room + 1n)).toBe(true);
    expect(lengths.some(({ declared, room }) => declared === room)).toBe(true);
  });
});
