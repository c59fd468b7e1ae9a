import { quoted } from '../messages.js';

/** The deepest nesting of arrays and objects; the headers read here nest three deep. */
const maxDepth = 64;

/** The most members of one object. */
const maxMembers = 1_000_000;

/** Ends the reading: `what` names the error in the text. */
type Refuse = (what: string) => never;

const literals: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null };

/**
 * Reads JSON text (RFC 8259) from front to back, one value at a time as the caller expects it, and is
 * stricter than JSON.parse, as headers require: it refuses an object that has a key twice, which
 * JSON.parse would silently drop, and returns numbers as they are spelled, before rounding. It builds no
 * value that the caller does not ask for, so nesting and size of a hostile text cost nothing.
 */
export class JsonCursor {
  private position = 0;
  private depth = 0;

  constructor(
    private readonly text: string,
    private readonly refuse: Refuse,
  ) {}

  private fail(what: string): never {
    return this.refuse(`${what} at character ${this.position}`);
  }

  private skipSpace(): void {
    const { text } = this;
    for (;;) {
      const code = text.charCodeAt(this.position);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.position++;
    }
  }

  private take(character: string): boolean {
    this.skipSpace();
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }

  private expect(character: string): void {
    if (!this.take(character)) this.fail(`"${character}" is missing`);
  }

  /** The kind of the next value, without reading it. */
  kind(): 'object' | 'array' | 'string' | 'number' | 'literal' {
    this.skipSpace();
    const character = this.text[this.position];
    if (character === undefined) return this.fail('the text ends too early');
    if (character === '{') return 'object';
    if (character === '[') return 'array';
    if (character === '"') return 'string';
    return /[-0-9]/.test(character) ? 'number' : 'literal';
  }

  private members(open: string, close: string, member: () => void): void {
    this.expect(open);
    if (++this.depth > maxDepth) this.fail(`nesting goes deeper than ${maxDepth}`);
    if (!this.take(close)) {
      do member();
      while (this.take(','));
      this.expect(close);
    }
    this.depth--;
  }

  /** Reads an object; `onMember` gets each key and must read its value. */
  object(onMember: (key: string) => void): void {
    const keys = new Set<string>();
    this.members('{', '}', () => {
      const key = this.string();
      if (keys.has(key)) this.refuse(`key ${quoted(key)} occurs twice in one object`);
      if (keys.size === maxMembers) this.fail(`an object has more than ${maxMembers} keys`);
      keys.add(key);
      this.expect(':');
      onMember(key);
    });
  }

  /** Reads an array; `onItem` must read each item. */
  array(onItem: () => void): void {
    this.members('[', ']', onItem);
  }

  /** Reads a string. A lone surrogate, which UTF-8 cannot carry, is refused. */
  string(): string {
    this.skipSpace();
    const { text } = this;
    if (text[this.position] !== '"') this.fail('a string is missing');
    let end = this.position + 1;
    let plain = true;
    for (; ; end++) {
      const code = text.charCodeAt(end);
      if (code === 0x22) break;
      if (Number.isNaN(code)) this.fail('a string does not end');
      if (code < 0x20) this.fail('a string holds a bare control character');
      if (code === 0x5c) {
        plain = false;
        end++;
      }
    }
    const value = plain
      ? text.slice(this.position + 1, end)
      : this.unescaped(text.slice(this.position, end + 1));
    this.position = end + 1;
    return value;
  }

  private unescaped(literal: string): string {
    let value: string;
    try {
      value = JSON.parse(literal) as string;
    } catch {
      return this.fail('a string holds a wrong escape');
    }
    return /\p{Surrogate}/u.test(value) ? this.fail('a string holds a lone surrogate') : value;
  }

  /** Reads a number and returns it as it is spelled. */
  number(): string {
    this.skipSpace();
    const pattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;
    pattern.lastIndex = this.position;
    const spelling = pattern.exec(this.text)?.[0];
    if (spelling === undefined) return this.fail('a number is missing');
    this.position += spelling.length;
    return spelling;
  }

  /** Reads true, false or null. */
  literal(): boolean | null {
    this.skipSpace();
    const word = /[a-zA-Z]*/y;
    word.lastIndex = this.position;
    const spelling = word.exec(this.text)?.[0] ?? '';
    if (!Object.hasOwn(literals, spelling)) return this.fail('a JSON value is missing');
    this.position += spelling.length;
    return literals[spelling];
  }

  /** Reads any value and forgets it; objects within it must not repeat keys either. */
  skip(): void {
    const kind = this.kind();
    if (kind === 'object') this.object(() => this.skip());
    else if (kind === 'array') this.array(() => this.skip());
    else this[kind]();
  }

  /** Checks that nothing but white space follows. */
  end(): void {
    this.skipSpace();
    if (this.position < this.text.length) this.fail('there is more text after the JSON value');
  }
}
