import { RequestError } from '../../request-error.js';
import { nearestName, plainText } from '../../words/index.js';

/** The numbers that an expression may name. */
export type Variables = Readonly<Record<string, number>>;

const functions: Readonly<Record<string, (...values: number[]) => number>> = {
  ceil: Math.ceil,
  floor: Math.floor,
  round: Math.round,
  abs: Math.abs,
  sqrt: Math.sqrt,
  log2: Math.log2,
  exp2: (x) => 2 ** x,
  min: Math.min,
  max: Math.max,
};
/** Functions that take any number of values; the others take one. */
const severalValues: ReadonlySet<string> = new Set(['min', 'max']);

const truth = (value: boolean) => (value ? 1 : 0);

/** Binary operators by precedence, the loosest first, as in C. */
const levels: readonly Readonly<Record<string, (a: number, b: number) => number>>[] = [
  { '||': (a, b) => truth(a !== 0 || b !== 0) },
  { '&&': (a, b) => truth(a !== 0 && b !== 0) },
  { '==': (a, b) => truth(a === b), '!=': (a, b) => truth(a !== b) },
  {
    '<': (a, b) => truth(a < b),
    '<=': (a, b) => truth(a <= b),
    '>': (a, b) => truth(a > b),
    '>=': (a, b) => truth(a >= b),
  },
  { '+': (a, b) => a + b, '-': (a, b) => a - b },
  { '*': (a, b) => a * b, '/': (a, b) => a / b, '%': (a, b) => a % b },
];

const token =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|([A-Za-z_]\w*)|([<>=!]=|&&|\|\||[-+*/%()<>?:!,]))/y;

/** Maximum length of a text, and maximum nesting depth: more than any launch file has. */
const longest = 1000;
const deepest = 50;

/** Reads an expression token by token, and evaluates it at the same time. */
class Evaluator {
  private at = 0;
  private depth = 0;
  private token = '';
  private kind: 'number' | 'name' | 'mark' | 'end' = 'end';

  constructor(
    private readonly text: string,
    private readonly variables: Variables,
  ) {
    this.advance();
  }

  value(): number {
    const value = this.conditional();
    if (this.kind !== 'end') this.fail('an operator or the end');
    return value;
  }

  private fail(expected: string): never {
    const found = this.kind === 'end' ? 'its end' : `"${plainText(this.token)}"`;
    throw new RequestError(`expected ${expected}, found ${found}`);
  }

  private advance(): void {
    token.lastIndex = this.at;
    const match = token.exec(this.text);
    if (match === null) {
      const rest = this.text.slice(this.at).trim();
      this.kind = rest === '' ? 'end' : 'mark';
      this.token = rest.slice(0, 1);
      if (rest !== '') this.fail('a number, a name or an operator');
      return;
    }
    const [, number, name, mark] = match as readonly (string | undefined)[];
    this.at = token.lastIndex;
    this.kind = number !== undefined ? 'number' : name !== undefined ? 'name' : 'mark';
    this.token = number ?? name ?? mark ?? '';
  }

  private accept(mark: string): boolean {
    if (this.kind !== 'mark' || this.token !== mark) return false;
    this.advance();
    return true;
  }

  private expect(mark: string): void {
    if (!this.accept(mark)) this.fail(`"${mark}"`);
  }

  private conditional(): number {
    if (++this.depth > deepest) throw new RequestError('it is nested too deep');
    let value = this.binary(0);
    if (this.accept('?')) {
      const yes = this.conditional();
      this.expect(':');
      const no = this.conditional();
      value = value !== 0 ? yes : no;
    }
    this.depth--;
    return value;
  }

  private binary(level: number): number {
    if (level === levels.length) return this.unary();
    const operators = levels[level];
    let left = this.binary(level + 1);
    while (this.kind === 'mark' && Object.hasOwn(operators, this.token)) {
      const operate = operators[this.token];
      this.advance();
      left = operate(left, this.binary(level + 1));
    }
    return left;
  }

  private unary(): number {
    let sign = 1;
    for (;;) {
      if (this.accept('-')) sign = -sign;
      else if (this.accept('!')) return sign * truth(this.unaryOnce() === 0);
      else if (!this.accept('+')) return sign * this.primary();
    }
  }

  private unaryOnce(): number {
    if (++this.depth > deepest) throw new RequestError('it is nested too deep');
    const value = this.unary();
    this.depth--;
    return value;
  }

  private primary(): number {
    const { kind, token: word } = this;
    if (kind === 'number') {
      this.advance();
      return Number(word);
    }
    if (this.accept('(')) {
      const value = this.conditional();
      this.expect(')');
      return value;
    }
    if (kind !== 'name') this.fail('a number, a name or "("');
    this.advance();
    return this.accept('(') ? this.call(word) : this.variable(word);
  }

  private variable(name: string): number {
    if (Object.hasOwn(this.variables, name)) return this.variables[name];
    const known = Object.keys(this.variables);
    const nearest = nearestName(name, known);
    throw new RequestError(
      known.length === 0
        ? `"${plainText(name)}" is of a problem, and there is none; give a number`
        : `"${plainText(name)}" is unknown; ${nearest === null ? `use ${known.join(', ')}` : `did you mean "${nearest}"?`}`,
    );
  }

  private call(name: string): number {
    if (!Object.hasOwn(functions, name))
      throw new RequestError(
        `"${plainText(name)}" is no function; use ${Object.keys(functions).join(', ')}`,
      );
    const values = [this.conditional()];
    while (severalValues.has(name) && this.accept(',')) values.push(this.conditional());
    this.expect(')');
    return functions[name](...values);
  }
}

/**
 * The value of an expression of numbers, names of `variables`, the operators of C with their precedences (true is 1, false 0,
 * `/` is the quotient of reals), `?:`, and ceil, floor, round, abs, sqrt, log2, exp2, min, max. All in double precision.
 *
 * @throws RequestError that states the fault of the text, for a name that is unknown, and for a result that is not finite
 */
export function evaluate(text: string, variables: Variables): number {
  if (text.length > longest) throw new RequestError(`it is longer than ${longest} characters`);
  const value = new Evaluator(text, variables).value();
  if (!Number.isFinite(value)) throw new RequestError(`it gives ${value}, which is no number`);
  return value;
}
