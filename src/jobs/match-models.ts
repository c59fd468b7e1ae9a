import { backwardOf, type KernelModel } from '../../kernels/index.js';
import { attentionGradients, type Gradient } from '../../oracles/index.js';
import { gradientLikeness } from '../attribution/index.js';
import { gradientQuantities, type GradientQuantityName } from '../audit/index.js';
import { matchGradients, type BackwardMatch } from '../emulate/index.js';
import { sumBits, type GradientBits, type ModelMatch } from '../report/json/index.js';
import { RequestError } from '../request-error.js';
import type { FileAuditMeans, MatchCandidate, MatchRequest } from './audit/index.js';

/** Exact gradients, by name. */
type ExactGradients = Readonly<Record<GradientQuantityName, Gradient | null>>;

function bitsOf(
  { given }: MatchRequest,
  { matches, made }: BackwardMatch,
  exact: ExactGradients | null,
): readonly GradientBits[] {
  return gradientQuantities.flatMap(({ name, label }) => {
    const match = matches[name];
    const tensor = given[name];
    if (match === null || !tensor) return [];
    const { equal, someOrder, undecided, noOrder } = match;
    const elements = equal + someOrder + undecided + noOrder;
    const correct = exact?.[name] ?? null;
    const likeness = correct && gradientLikeness(tensor, made[name], correct.values);
    return [{ name, label, elements, equal, someOrder, undecided, noOrder, likeness }];
  });
}

/** Compares with one model; if that is impossible, the reason takes its place. */
async function matchModel(
  request: MatchRequest,
  { model, settings }: MatchCandidate,
  exact: ExactGradients | null,
): Promise<ModelMatch> {
  const { problem, dout, forward, given, threads } = request;
  const chosen = { model: model.name, settings: Object.fromEntries(settings) };
  try {
    const run = { settings, threads };
    const match = await matchGradients(problem, model, { dout, forward }, given, run);
    const gradients = bitsOf(request, match, exact);
    return { ...chosen, forward: match.forward, reason: null, gradients };
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return { ...chosen, forward: null, reason: error.message, gradients: [] };
  }
}

/**
 * Order by nearness: first those equal in every bit or of some order, then by likeness, then by equal
 * elements; last those not compared.
 */
function byNearness(a: ModelMatch, b: ModelMatch): number {
  const [ofA, ofB] = [sumBits(a), sumBits(b)];
  const isWhole = ({ elements, equal, someOrder }: typeof ofA) => equal + someOrder === elements;
  const share = ({ likeness }: typeof ofA) =>
    likeness === null || likeness.misrounded === 0
      ? 0
      : likeness.equalMisrounded / likeness.misrounded;
  return (
    Number(a.reason !== null) - Number(b.reason !== null) ||
    Number(isWhole(ofB)) - Number(isWhole(ofA)) ||
    share(ofB) - share(ofA) ||
    ofB.equal - ofA.equal
  );
}

/** The effect of a candidate on a problem: all settings, or the reason that it does not take it. */
function effectOf({ problem, dout, forward }: MatchRequest, { model, settings }: MatchCandidate) {
  try {
    return JSON.stringify(backwardOf(model).prepare(problem, { dout, forward }, settings).settings);
  } catch (error) {
    if (!(error instanceof RequestError)) throw error;
    return error.message;
  }
}

/** The candidates of models without those that have the same effect on this problem as one before them. */
function differentCandidates(
  request: MatchRequest,
  models: readonly KernelModel[],
): readonly MatchCandidate[] {
  return models.flatMap((model) => {
    const known = new Set<string>();
    const all = model.backward?.candidates ?? [];
    return all.flatMap((texts) => {
      const candidate = { model, settings: new Map(Object.entries(texts)) };
      if (all.length === 1) return [candidate];
      const effect = effectOf(request, candidate);
      if (known.has(effect)) return [];
      known.add(effect);
      return [candidate];
    });
  });
}

/**
 * The model that these gradients are from, or nearest to: every candidate of every model with a backward pass, those with
 * the same settings on this problem once; the nearest first.
 */
async function identifyGradients(
  request: MatchRequest,
  models: readonly KernelModel[],
): Promise<readonly ModelMatch[]> {
  const exact = attentionGradients(request.problem, request.dout);
  const matches: ModelMatch[] = [];
  for (const candidate of differentCandidates(request, models))
    matches.push(await matchModel(request, candidate, exact));
  return matches.sort(byNearness);
}

/** Comparisons of gradients, bit for bit: with a declared model, and then by `identifyGradients` with others. */
export const matchModels: NonNullable<FileAuditMeans['matchModels']> = async (
  request,
  declared,
  others,
) => [
  ...(declared === null ? [] : [await matchModel(request, declared, null)]),
  ...(others.length === 0 ? [] : await identifyGradients(request, others)),
];
