function isEqual(one: Uint32Array, other: Uint32Array): boolean {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}

/** Keys of equal content, by numbers in the order in which they come. */
export class Keys {
  readonly #alike = new Map<number, number[]>();
  readonly #keys: Uint32Array[] = [];

  /** The number of a key; that of a new one is the number of keys before it. */
  of(key: Uint32Array): number {
    let hash = 0;
    for (let i = 0; i < key.length; i++) hash = (Math.imul(hash, 31) + key[i]) | 0;
    let alike = this.#alike.get(hash);
    if (alike === undefined) this.#alike.set(hash, (alike = []));
    for (const number of alike) if (isEqual(this.#keys[number], key)) return number;
    alike.push(this.#keys.length);
    return this.#keys.push(key.slice()) - 1;
  }
}
