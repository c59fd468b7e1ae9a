// Prints which tiles of keys the library tests against which rows, and how far statistics may deviate, as JSON:
//   node plans.mjs <dist> '[[batch, heads, queries, keys, [[first query, queries, first key, keys], …] or null], …]'
import { join } from 'node:path';
import { runnerImport } from 'vite';

const [dist, shapes] = process.argv.slice(2);
// dist has none of the library's own modules, only its programs.
const root = join(dist, '..');
const of = async (name) => {
  const source = join(root, `src/audit/structure/${name}.ts`);
  return (await runnerImport(source, { root, configFile: false })).module;
};
const { planKeyTiles } = await of('key-tile-plan');
const { structureLimits } = await of('structure-entries');

const plans = JSON.parse(shapes).map(([batch, heads, queries, keys, runs]) => {
  const sequences = runs?.map(([firstQuery, queries, firstKey, keys]) => ({
    firstQuery,
    queries,
    firstKey,
    keys,
  }));
  const shape = { batch, heads, kvHeads: heads, groupSize: 1, queries, keys, qkDim: 8, vDim: 8 };
  const limits = structureLimits({ heads: batch * heads, queries }, 5e-10);
  const { groups, limits: ofTiles } = planKeyTiles({ sequences }, shape, limits.share);
  const first = groups.filter(({ head }) => head === 0);
  const blocks = first.flatMap((group) => group.blocks);
  return {
    deviations: limits.deviations,
    tileKeys: first[0]?.tileKeys ?? null,
    tiles: first.reduce((sum, group) => sum + group.tiles, 0),
    // A group of tiles leaves out blocks of sequences that have none of them.
    blocks: [...new Map(blocks.map((block) => [block.firstRow, block])).values()]
      .map(({ firstRow, rows, firstKey, keys }) => [firstRow, rows, firstKey, keys])
      .sort(([a], [b]) => a - b),
    ofBlock: ofTiles.ofBlock,
    ofHead: ofTiles.ofHead,
  };
});
console.log(JSON.stringify(plans));
