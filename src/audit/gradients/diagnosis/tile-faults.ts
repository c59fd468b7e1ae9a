import { attentionGradients } from '../../../../oracles/index.js';
import { listed } from '../gradient-verdict.js';
import { gradientsOf, meanKeys, withRowFactors } from './changed-gradients.js';
import type { FailedGradients } from './failed-gradients.js';
import { fails, type Prediction } from './prediction.js';

/** Rows and keys of the tiles that kernels lose. */
const tileSizes = [128, 64] as const;

/** How near to −1 (missing) or 1 (twice) the part of a tile in the error is to be. */
const nearness = 2 ** -3;

/** −1 for a contribution that an error lacks, 1 for one that it has once more, 0 for neither. */
function timesIn(error: Float64Array, contribution: Float64Array): number {
  let [products, squares] = [0, 0];
  contribution.forEach((x, i) => {
    products += error[i] * x;
    squares += x * x;
  });
  const ratio = squares > 0 ? products / squares : 0;
  return Math.abs(Math.abs(ratio) - 1) < nearness ? Math.sign(ratio) : 0;
}

/** What keys [first, end) add to dQ: as gradients of these keys alone, by the weights that they have among all. */
function dqOfKeys(
  { problem, dout, measured }: FailedGradients,
  first: number,
  end: number,
): Float64Array {
  const { batch, qkDim } = measured.shape;
  const { denominator } = measured.reference;
  const keyRanges = Array.from({ length: batch }, () => ({ begin: first, end }));
  const ofTile = { ...problem, keyRanges };
  const { dq, mean } = attentionGradients(ofTile, dout, { wanted: ['dq'] });
  const { means, denominator: ownDenominator } = meanKeys(ofTile);
  const weights = ownDenominator.map((x, row) =>
    x === -Infinity ? 0 : Math.exp(x - denominator[row]),
  );
  return dq!.values.map((x, i) => {
    const row = Math.floor(i / qkDim);
    const moved = problem.scale * (mean.values[row] - measured.mean.values[row]) * means[i];
    return weights[row] === 0 ? 0 : weights[row] * (x + moved);
  });
}

/** A tile of keys that dQ lacks, or has twice. */
function* keyTileFaults(failed: FailedGradients, size: number): Generator<Prediction> {
  const { problem, measured, given } = failed;
  const { keys, batch, heads, queries, qkDim } = measured.shape;
  const dq = given.find(({ quantity }) => quantity.name === 'dq');
  const isPlain = problem.sequences === undefined && problem.keyRanges === undefined;
  if (dq === undefined || !fails(failed, dq) || !isPlain || problem.softcap !== null) return;
  if (keys <= size) return;
  const { values } = measured.gradients.dq.exact;
  const error = dq.values.map((x, i) => x - values[i]);
  for (let first = 0; first < keys; first += size) {
    const end = Math.min(first + size, keys);
    const ofTile = dqOfKeys(failed, first, end);
    const words = { '-1': ['missing', 'lacks'], '1': ['twice', 'has twice'] } as const;
    const whole = timesIn(error, ofTile);
    if (whole !== 0) {
      const [id, verb] = words[whole === 1 ? '1' : '-1'];
      yield {
        id: `key-tile-${id}`,
        sentence: `dQ ${verb} what keys ${first} to ${end - 1} add to it`,
        predicted: { dq: values.map((x, i) => x + whole * ofTile[i]) },
      };
    }
    for (
      let row = 0;
      row < batch * heads * queries;
      row += Math.min(size, queries - (row % queries))
    ) {
      const rows = Math.min(size, queries - (row % queries));
      const [begin, stop] = [row * qkDim, (row + rows) * qkDim];
      const times = timesIn(error.subarray(begin, stop), ofTile.subarray(begin, stop));
      if (times === 0) continue;
      const [id, verb] = words[times === 1 ? '1' : '-1'];
      const from = row % queries;
      yield {
        id: `key-tile-${id}`,
        sentence: `dQ of queries ${from} to ${from + rows - 1} of head ${Math.floor(row / queries) % heads} ${verb} what keys ${first} to ${end - 1} add to it`,
        predicted: {
          dq: values.map((x, i) => (i >= begin && i < stop ? x + times * ofTile[i] : x)),
        },
      };
    }
  }
}

/** A tile of queries that dK and dV lack, or have twice. */
function* queryTileFaults(failed: FailedGradients, size: number): Generator<Prediction> {
  const { problem, dout, measured, given } = failed;
  const { batch, heads, queries } = measured.shape;
  const wanted = (['dk', 'dv'] as const).filter((name) =>
    given.some((one) => one.quantity.name === name && fails(failed, one)),
  );
  if (wanted.length === 0 || queries <= size) return;
  const failing = given.filter(({ quantity }) => wanted.some((name) => name === quantity.name));
  for (let first = 0; first < queries; first += size) {
    const end = Math.min(first + size, queries);
    const factors = Float64Array.from({ length: batch * heads * queries }, (_, row) =>
      row % queries >= first && row % queries < end ? 1 : 0,
    );
    const ofTile = gradientsOf(problem, withRowFactors(dout, factors), wanted);
    const times = failing.map(({ quantity: { name }, values }) => {
      const exact = measured.gradients[name].exact.values;
      return timesIn(
        values.map((x, i) => x - exact[i]),
        ofTile[name],
      );
    });
    if (times[0] === 0 || times.some((one) => one !== times[0])) continue;
    const predicted = failing.map(({ quantity: { name } }) => [
      name,
      measured.gradients[name].exact.values.map((x, i) => x + times[0] * ofTile[name][i]),
    ]);
    const isTwice = times[0] === 1;
    const words = listed(failing.map(({ quantity }) => quantity.prose));
    const verb = isTwice
      ? failing.length === 1
        ? 'has twice'
        : 'have twice'
      : failing.length === 1
        ? 'lacks'
        : 'lack';
    yield {
      id: isTwice ? 'query-tile-twice' : 'query-tile-missing',
      sentence: `${words} ${verb} what queries ${first} to ${end - 1} add`,
      predicted: Object.fromEntries(predicted) as Prediction['predicted'],
    };
  }
}

/** Tiles of keys that dQ lacks or has twice, tiles of queries that dK and dV lack or have twice. */
export function* tileFaults(failed: FailedGradients): Generator<Prediction> {
  for (const size of tileSizes) {
    yield* keyTileFaults(failed, size);
    yield* queryTileFaults(failed, size);
  }
}
