import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import type { Place } from './module.js';

/**
 * The kind of a token: a name (`%r1`, `mov`), a word after a dot (`.u32`, `.shared::cta`), a number, a text in double
 * quotes, a mark (`{`, `<<`), or the end of the text.
 */
export type TokenKind = 'name' | 'dotted' | 'number' | 'text' | 'mark' | 'end';

const nameHead = /[A-Za-z_$%]/;
const nameTail = /[A-Za-z0-9_$]/;
/** Whether a name may begin, or continue, with a character, by its code. */
const isNameHead = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(nameHead.test(String.fromCharCode(code))),
);
const isNameTail = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(nameTail.test(String.fromCharCode(code))),
);

/** A number with the text that follows it without a separator, which may make it invalid. */
const numberPattern = /0[xXfFdDbB]\w*|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\w*/y;
const dottedPattern = /\.[\w$]+(?:::\w+)*/y;
const textPattern = /"(?:[^"\\\n]|\\[^\n])*"/y;
const markPattern = /<<|>>|[<>=!]=|&&|\|\||[()[\]{}<>,;:+\-*/%!~&|^?=@]/y;

/** Maximum number of characters of a line, and of a token, that a message repeats. */
const shownOfLine = 80;
const shownOfToken = 40;

/**
 * Reads PTX token by token; comments and white space separate them (PTX ISA, "Source Format"). `advance` goes on in the
 * text, and the members describe the current token: the grammar needs one token of lookahead.
 */
export class TokenReader {
  kind: TokenKind = 'end';
  /** The token as written, without the dot of a dotted one and the quotes of a text; `''` at the end. */
  text = '';
  /** Beginning of the token, and end of the one before it, as indices into the text. */
  start = 0;
  previousEnd = 0;
  /** Depth of the parser in blocks, lists and parentheses. */
  private depth = 0;
  private end = 0;
  private line = 1;
  private lineStart = 0;

  /**
   * @param source the PTX text
   * @param fileName its name in messages
   */
  constructor(
    private readonly source: string,
    private readonly fileName: string,
  ) {
    this.advance();
  }

  /** The place of the token. */
  place(): Place {
    return { line: this.line, column: this.start - this.lineStart + 1 };
  }

  /** Whether the token is this mark. */
  isMark(mark: string): boolean {
    return this.kind === 'mark' && this.text === mark;
  }

  /** Whether the token is `.name`. */
  isDotted(name: string): boolean {
    return this.kind === 'dotted' && this.text === name;
  }

  /** Skips the token if it is this mark; returns whether it is. */
  acceptMark(mark: string): boolean {
    if (!this.isMark(mark)) return false;
    this.advance();
    return true;
  }

  /** Skips a mark. @throws RequestError if the token is not this mark */
  expectMark(mark: string): void {
    if (!this.acceptMark(mark)) this.fail(`"${mark}"`);
  }

  /** Skips a token of a kind, and returns it as written. @throws RequestError if it is of another kind */
  expectKind(kind: TokenKind, what: string): string {
    if (this.kind !== kind) this.fail(what);
    const { text } = this;
    this.advance();
    return text;
  }

  /**
   * Skips a name and returns it. A name may be in double quotes.
   *
   * @param what the expected name, for the message
   * @throws RequestError if the token is not a name
   */
  expectName(what: string): string {
    if (this.kind === 'text' && this.text !== '') return this.expectKind('text', what);
    return this.expectKind('name', what);
  }

  /**
   * Calls `parse` one level deeper.
   *
   * @throws RequestError past 100 levels, which no compiler writes and which would overflow the stack some day
   */
  nested<Result>(parse: () => Result): Result {
    if (this.depth === 100)
      throw this.error('what is nested here is deeper than the 100 levels that are read');
    this.depth++;
    const result = parse();
    this.depth--;
    return result;
  }

  /**
   * Fails at the token.
   * @throws RequestError with the expected text and the text that is there
   */
  fail(expected: string): never {
    throw this.error(`expected ${expected}, found ${this.found()}`);
  }

  /** The error of a token: one line with file, line, column and the line's text. */
  error(message: string, place = this.place()): RequestError {
    const { line, column } = place;
    return new RequestError(
      `${plainText(this.fileName)}, line ${line}, column ${column}: ${message}${this.lineAround(place)}`,
    );
  }

  /** Goes to the next token. @throws RequestError where the text has no token */
  advance(): void {
    this.previousEnd = this.end;
    this.skipBlanks();
    const { source, end: start } = this;
    this.start = start;
    const code = source.charCodeAt(start);
    if (isNameHead[code] === 1 && this.readName(start)) return;
    if (start >= source.length) {
      this.kind = 'end';
      this.text = '';
    } else if (code >= 0x30 && code <= 0x39) this.match(numberPattern, 'number');
    else if (code === 0x2e && this.match(dottedPattern, 'dotted')) this.text = this.text.slice(1);
    else if (code === 0x22 && this.match(textPattern, 'text')) this.text = this.text.slice(1, -1);
    else if (!this.match(markPattern, 'mark')) throw this.unreadable();
  }

  private skipBlanks(): void {
    const { source } = this;
    let at = this.end;
    for (;;) {
      const code = source.charCodeAt(at);
      if (code === 0x0a) {
        this.line++;
        this.lineStart = ++at;
      } else if (code === 0x20 || code === 0x09 || code === 0x0d || code === 0x0c || code === 0x0b)
        at++;
      else if (code === 0x2f && source.charCodeAt(at + 1) === 0x2f) {
        const newline = source.indexOf('\n', at);
        at = newline === -1 ? source.length : newline;
      } else if (code === 0x2f && source.charCodeAt(at + 1) === 0x2a) at = this.skipComment(at);
      else break;
    }
    this.end = at;
  }

  /** The index after the comment that begins at `start`; counts its lines. */
  private skipComment(start: number): number {
    const close = this.source.indexOf('*/', start + 2);
    if (close === -1) {
      this.start = start;
      throw this.error('expected "*/" somewhere behind this "/*", found the end of the text');
    }
    for (let at = this.source.indexOf('\n', start); at !== -1 && at < close;) {
      this.line++;
      this.lineStart = at + 1;
      at = this.source.indexOf('\n', at + 1);
    }
    return close + 2;
  }

  /** Reads the name that begins at `start`; a `$` or `%` alone is not a name. */
  private readName(start: number): boolean {
    const { source } = this;
    let end = start + 1;
    while (isNameTail[source.charCodeAt(end)] === 1) end++;
    const head = source.charCodeAt(start);
    if (end === start + 1 && (head === 0x24 || head === 0x25)) return false;
    this.kind = 'name';
    this.text = source.slice(start, end);
    this.end = end;
    return true;
  }

  private match(pattern: RegExp, kind: TokenKind): boolean {
    pattern.lastIndex = this.start;
    const found = pattern.exec(this.source);
    if (found === null) return false;
    this.kind = kind;
    this.text = found[0];
    this.end = pattern.lastIndex;
    return true;
  }

  private unreadable(): RequestError {
    const character = String.fromCodePoint(this.source.codePointAt(this.start) ?? 0);
    return this.error(
      character === '"'
        ? "expected '\"' before the end of the line, which closes the text that begins here"
        : `expected a token of PTX, found the character "${plainText(character)}"`,
    );
  }

  private found(): string {
    if (this.kind === 'end') return 'the end of the text';
    const token = this.source.slice(this.start, this.end);
    return `"${plainText(token.length > shownOfToken ? `${token.slice(0, shownOfToken)}…` : token)}"`;
  }

  /** The text of the line of a place, as far as a message shows it. */
  private lineAround({ line, column }: Place): string {
    let start = line === this.line ? this.lineStart : 0;
    for (let passed = start === 0 ? 1 : line; passed < line; passed++)
      start = this.source.indexOf('\n', start) + 1;
    const newline = this.source.indexOf('\n', start);
    const whole = this.source.slice(start, newline === -1 ? undefined : newline);
    const first = Math.max(0, Math.min(column - 1 - shownOfLine / 2, whole.length - shownOfLine));
    const shown = whole.slice(first, first + shownOfLine).trim();
    const text = `${first > 0 ? '…' : ''}${shown}${whole.length > first + shownOfLine ? '…' : ''}`;
    return text === '' ? '' : `; the line reads: ${plainText(text)}`;
  }
}
