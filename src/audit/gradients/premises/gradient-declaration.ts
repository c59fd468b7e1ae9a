import type { GradientArithmetic } from '../../../../kernels/index.js';
import { formats, type FormatName } from '../../../formats/index.js';
import type { Problem } from '../../../problem/index.js';
import { RequestError } from '../../../request-error.js';
import { premisesByFormat, workingFormat } from '../../premises/premises.js';
import { anyGradientPremises, hardwareTanh, type GradientPremises } from '../bounds/index.js';

/** Declarations about a backward pass, as users write them: a word for each, all of them optional. */
export type GradientDeclaration = Readonly<Partial<Record<GradientPremiseName, string>>>;

/** The change that a declaration makes to the premises of a problem. */
type Change = (problem: Problem, output: FormatName) => Partial<GradientPremises>;

/** One premise of a backward pass. */
interface GradientPremiseWord {
  /** The subject of the premise, for help and documents. */
  readonly description: string;
  /** The words of a declared value in a report. */
  readonly clause: (value: string) => string;
  /** The values that may be declared, and the changes that they make. */
  readonly values: Readonly<Record<string, Change>>;
}

const formatNames = Object.keys(formats) as FormatName[];

/** A premise that is a format: any by its name, or that of the inputs. */
function ofFormat(
  name: keyof GradientArithmetic & keyof GradientPremises,
  description: string,
  what: string,
): GradientPremiseWord {
  const values: Record<string, Change> = {
    input: ({ q }, output) => ({ [name]: workingFormat(q.format, output) }),
  };
  for (const format of formatNames) values[format] = () => ({ [name]: format });
  const read = (value: string) => (value === 'input' ? "the inputs' format" : value);
  return { description, values, clause: (value) => `${what} ${read(value)}` };
}

/** The format that D is written in on its way, which applies only to a D of the stored O. */
function ofDelta(
  name: 'deltaProducts' | 'deltaSums',
  description: string,
  what: string,
): GradientPremiseWord {
  const { values, ...word } = ofFormat(name, description, what);
  const changes = Object.entries(values).map(([value, change]): [string, Change] => [
    value,
    (problem, output) => ({ ...change(problem, output), delta: 'stored-output' }),
  ]);
  return { ...word, values: Object.fromEntries(changes) };
}

/** The premise of a sink's terms, whose value may be that of the kernels that make D in one way. */
function ofSinks({ values, clause, ...word }: GradientPremiseWord): GradientPremiseWord {
  return {
    ...word,
    values: { any: () => ({ sinkTerms: 'any' }), ...values },
    clause: (value) => (value === 'any' ? "sinks' P and dS as D has them" : clause(value)),
  };
}

/** Every premise of a backward pass that can be declared. */
export const gradientPremiseWords = {
  delta: {
    description: 'what the row sums D are made of',
    clause: (value) =>
      value === 'any'
        ? 'D of the stored O or of P dP'
        : value === 'weights'
          ? 'D of P dP'
          : 'D of the stored O',
    values: {
      any: () => ({ delta: 'any' }),
      'stored-output': () => ({ delta: 'stored-output' }),
      weights: () => ({ delta: 'weights' }),
    },
  },
  deltaProducts: ofDelta(
    'deltaProducts',
    'the format that the products of dO and the stored O are rounded to before they are added',
    'products dO·O in',
  ),
  deltaSums: ofDelta('deltaSums', 'the format that D = dO·O is kept in', 'D = dO·O kept in'),
  p: ofFormat('p', "the format that P is rounded to before dV's product", 'P for dV in'),
  ds: ofFormat('ds', 'the format that dS is rounded to', 'dS in'),
  weights: ofFormat('weights', 'the format of the P that dS is made of', 'dS made of P in'),
  sinkTerms: ofSinks(
    ofFormat(
      'sinkTerms',
      'the format that P and dS of a sink are rounded to before dSink adds them',
      "sinks' P and dS in",
    ),
  ),
  scores: ofFormat('scores', 'the format that scores are written in', 'scores in'),
  dp: ofFormat('dp', 'the format that dP is written in', 'dP in'),
  partials: ofFormat(
    'partials',
    'the format that a query head stores its dK and dV in',
    "heads' dK and dV in",
  ),
  scale: {
    description: 'whether the scale multiplies dS before or after it is rounded',
    clause: (value) => (value === 'any' ? 'the scale anywhere' : 'the scale after dS is rounded'),
    values: {
      any: () => ({ scaleBeforeRounding: true }),
      'after-rounding': () => ({ scaleBeforeRounding: false }),
    },
  },
  sums: {
    description: 'whether sums may cut off what they cannot hold',
    clause: (value) => (value === 'any' ? 'any sums' : 'sums that round to nearest'),
    values: {
      any: () => ({ sums: 'any' }),
      nearest: () => ({ sums: 'nearest' }),
    },
  },
  tanh: {
    description: "the quality of the softcap's tanh",
    clause: (value) =>
      value === 'any'
        ? 'any tanh'
        : value === 'promised'
          ? 'a tanh within 2^-11'
          : value === 'hardware'
            ? "the hardware's tanh"
            : 'a tanh as good as elementwise operations',
    values: {
      any: (problem, output) => {
        const { tanh, tanhFloor } = anyGradientPremises(problem, output);
        return { tanh, tanhFloor };
      },
      promised: ({ q }, output) => ({
        tanh: premisesByFormat[workingFormat(q.format, output)].tanh,
      }),
      hardware: ({ q }, output) => ({
        tanh: Math.min(hardwareTanh, premisesByFormat[workingFormat(q.format, output)].tanh),
        tanhFloor: 0,
      }),
      accurate: ({ q }, output) => {
        const { elementwise, tanh } = premisesByFormat[workingFormat(q.format, output)];
        return { tanh: Math.min(2 * elementwise, tanh), tanhFloor: 0 };
      },
    },
  },
} as const satisfies Readonly<Record<string, GradientPremiseWord>>;

/** The name of one of {@link gradientPremiseWords}. */
export type GradientPremiseName = keyof typeof gradientPremiseWords;

/** The names of all premises of a backward pass. */
export const gradientPremiseNames = Object.keys(gradientPremiseWords) as GradientPremiseName[];

function wordOf(name: GradientPremiseName): GradientPremiseWord {
  return gradientPremiseWords[name];
}

/**
 * A declaration as texts: `name=value`, several of them separated by commas; later ones replace earlier ones.
 * @param where the source of the texts, which messages begin with
 * @throws RequestError for an unknown premise or value
 */
export function parseGradientDeclaration(
  texts: readonly string[],
  where: string,
): GradientDeclaration {
  const declared: Partial<Record<GradientPremiseName, string>> = {};
  for (const part of texts.flatMap((text) => text.split(',')).map((word) => word.trim())) {
    if (part === '') continue;
    const [name, value] = part.split('=', 2);
    if (!Object.hasOwn(gradientPremiseWords, name))
      throw new RequestError(
        `${where} has ${JSON.stringify(name)}; the premises of gradients are ${gradientPremiseNames.join(', ')}`,
      );
    const { values } = wordOf(name as GradientPremiseName);
    if (value === undefined || !Object.hasOwn(values, value))
      throw new RequestError(
        `${where} has ${name} ${JSON.stringify(value ?? '')}; give ${Object.keys(values).join(', ')}`,
      );
    declared[name as GradientPremiseName] = value;
  }
  const short = (['deltaProducts', 'deltaSums'] as const).find((name) => declared[name]);
  if (short !== undefined && (declared.delta ?? 'stored-output') !== 'stored-output')
    throw new RequestError(
      `${where} has ${short}, which is of D = dO·O, and delta ${JSON.stringify(declared.delta)}; leave out one, or give delta=stored-output`,
    );
  return declared;
}

/** "any correct kernel with D of the stored O and dS in bf16" */
export function describeGradientDeclaration(of: string, declared: GradientDeclaration): string {
  const clauses = gradientPremiseNames.flatMap((name) => {
    const value = declared[name];
    return value === undefined ? [] : [wordOf(name).clause(value)];
  });
  if (clauses.length === 0) return of;
  const last = clauses.pop()!;
  return `${of} with ${clauses.length === 0 ? last : `${clauses.join(', ')} and ${last}`}`;
}

/** Premises with a declaration applied. */
export function declaredGradientPremises(
  problem: Problem,
  premises: GradientPremises,
  declared: GradientDeclaration,
): GradientPremises {
  const changes = gradientPremiseNames.map((name) => {
    const value = declared[name];
    return value === undefined ? {} : wordOf(name).values[value](problem, premises.output);
  });
  const description = describeGradientDeclaration(premises.description, declared);
  return Object.assign({ ...premises }, ...changes, { description }) as GradientPremises;
}
