import { describe, expect, it } from 'vitest';
import { WorkingMemories } from '../../../oracles/index.js';

/** A memory of two pages, as the loops have them; it counts how many were made. */
function maker() {
  const made: WebAssembly.Memory[] = [];
  const create = () => {
    const memory = new WebAssembly.Memory({ initial: 2 });
    made.push(memory);
    return { kernels: { memory } };
  };
  return { made, create };
}

describe('working memories', () => {
  it('lends what came back to who asks for its kind, zero where loops work', () => {
    const { made, create } = maker();
    const memories = new WorkingMemories();
    const first = memories.lend('a', create, (one) => {
      new Uint8Array(one.kernels.memory.buffer).fill(7);
      return one;
    });
    const seen = memories.lend('a', create, (one) => {
      expect(one).toBe(first);
      return new Uint8Array(one.kernels.memory.buffer).slice();
    });
    // What the compiler placed stays.
    expect(seen.subarray(0, 65536).every((byte) => byte === 7)).toBe(true);
    expect(seen.subarray(65536).every((byte) => byte === 0)).toBe(true);
    memories.lend('b', create, () => undefined);
    expect(made).toHaveLength(2);
  });

  it('lends no memory twice at once, and takes it back from work that throws', () => {
    const { made, create } = maker();
    const memories = new WorkingMemories();
    memories.lend('a', create, (outer) =>
      memories.lend('a', create, (inner) => expect(inner).not.toBe(outer)),
    );
    const fails = () =>
      memories.lend('a', create, () => {
        throw new Error('no');
      });
    expect(fails).toThrow('no');
    expect(fails).toThrow('no');
    expect(made).toHaveLength(2);
  });

  it('keeps those of the kinds that were lent last', () => {
    const { made, create } = maker();
    const memories = new WorkingMemories();
    for (let kind = 0; kind < 100; kind++) memories.lend(`${kind}`, create, () => undefined);
    memories.lend('99', create, () => undefined);
    expect(made).toHaveLength(100);
    memories.lend('0', create, () => undefined);
    expect(made).toHaveLength(101);
  });

  it('keeps what was made last of a kind, for its owner alone', () => {
    const memories = new WorkingMemories();
    const [one, other] = [{}, {}];
    const made: string[] = [];
    const keep = (kind: string, owner: object, name: string) =>
      memories.keep(kind, owner, () => {
        made.push(name);
        return name;
      });
    expect(keep('a', one, 'first')).toBe('first');
    expect(keep('a', one, 'again')).toBe('first');
    expect(keep('b', one, 'of another kind')).toBe('of another kind');
    expect(keep('a', other, 'of another owner')).toBe('of another owner');
    expect(keep('a', one, 'forgotten since')).toBe('forgotten since');
    expect(made).toHaveLength(4);
  });
});
