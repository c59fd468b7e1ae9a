/**
 * A kernel behind the process protocol that shares no code with flashproof: textbook attention in fp64
 * on bf16 inputs, written out in fp32. The first argument says what it does wrong on causal problems:
 * crash, hang, garbage, shape (a tensor of another), silent (no file), one-percent (O is 1 % too
 * large), misspelt (an lsee in place of the LSE), extra (a tensor that nobody asked for), decline; the words with "always-" before them mean every problem. `none` does nothing wrong. Gradients are given where
 * `wants` names them, but for `always-forward`, which knows no `wants`; `always-delta` leaves out D.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , fault = 'none', limit = 'Infinity'] = process.argv;

function decodeBfloat16(bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint16(0, bits);
  return view.getFloat32(0);
}

function readTensors(path) {
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerBytes).toString());
  return Object.fromEntries(
    Object.entries(header)
      .filter(([name]) => name !== '__metadata__')
      .map(([name, { dtype, shape, data_offsets: offsets }]) => {
        if (dtype !== 'BF16') throw new Error(`${name} is ${dtype}`);
        const [begin, end] = offsets.map((offset) => 8 + headerBytes + offset);
        const values = [];
        for (let at = begin; at < end; at += 2) values.push(decodeBfloat16(file.readUInt16LE(at)));
        return [name, { shape, values }];
      }),
  );
}

function writeTensors(path, tensors) {
  let offset = 0;
  const header = {};
  const contents = tensors.map(([name, { shape, values }]) => {
    const content = Buffer.from(Float32Array.from(values).buffer);
    header[name] = { dtype: 'F32', shape, data_offsets: [offset, offset + content.length] };
    offset += content.length;
    return content;
  });
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(path, Buffer.concat([length, text, ...contents]));
}

function attention({ q, k, v }, { scale, causal, window, softcap }) {
  const [batch, heads, queries, dim] = q.shape;
  const [, kvHeads, keys] = k.shape;
  const vDim = v.shape[3];
  const [left, right] = window ?? [-1, -1];
  const out = [];
  const lse = [];
  const rows = [];
  for (let row = 0; row < batch * heads * queries; row++) {
    const head = Math.floor(row / queries);
    const kvHead = Math.floor(head / (heads / kvHeads));
    const diagonal = (row % queries) + keys - queries;
    const scores = new Map();
    for (let key = 0; key < keys; key++) {
      if (causal && key > diagonal) continue;
      if ((left >= 0 && key < diagonal - left) || (right >= 0 && key > diagonal + right)) continue;
      let score = 0;
      for (let c = 0; c < dim; c++)
        score += q.values[row * dim + c] * k.values[(kvHead * keys + key) * dim + c];
      score *= scale;
      scores.set(key, softcap === null ? score : softcap * Math.tanh(score / softcap));
    }
    const maximum = Math.max(...scores.values());
    let sum = 0;
    const sums = new Array(vDim).fill(0);
    for (const [key, score] of scores) {
      const weight = Math.exp(score - maximum);
      sum += weight;
      for (let c = 0; c < vDim; c++) sums[c] += weight * v.values[(kvHead * keys + key) * vDim + c];
    }
    const probabilities = [...scores].map(([key, score]) => {
      const slope = softcap === null ? 1 : 1 - (score / softcap) ** 2;
      return { key: kvHead * keys + key, p: Math.exp(score - maximum) / sum, slope };
    });
    rows.push({ row, probabilities });
    out.push(...sums.map((total) => (scores.size === 0 ? 0 : total / sum)));
    lse.push(scores.size === 0 ? -Infinity : maximum + Math.log(sum));
  }
  return {
    rows,
    out: { shape: [batch, heads, queries, vDim], values: out },
    lse: { shape: [batch, heads, queries], values: lse },
  };
}

/** dQ, dK and dV of what `attention` made of a problem. */
function gradients({ q, k, v, dout }, { scale }, { rows, out }, withDelta) {
  const dim = q.shape[3];
  const vDim = v.shape[3];
  const zeros = ({ shape, values }) => ({ shape, values: values.map(() => 0) });
  const [dq, dk, dv] = [q, k, v].map(zeros);
  const at = (tensor, row, width) => tensor.values.slice(row * width, (row + 1) * width);
  const dot = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0);
  for (const { row, probabilities } of rows) {
    const ofRow = at(dout, row, vDim);
    const delta = withDelta ? dot(ofRow, at(out, row, vDim)) : 0;
    for (const { key, p, slope } of probabilities) {
      const ds = scale * slope * p * (dot(ofRow, at(v, key, vDim)) - delta);
      for (let c = 0; c < vDim; c++) dv.values[key * vDim + c] += p * ofRow[c];
      for (let c = 0; c < dim; c++) {
        dq.values[row * dim + c] += ds * k.values[key * dim + c];
        dk.values[key * dim + c] += ds * q.values[row * dim + c];
      }
    }
  }
  return Object.entries({ dq, dk, dv });
}

const served = [];
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = (fields) => console.log(JSON.stringify({ id: request.id, ...fields }));
  const isHit = request.causal || fault.startsWith('always-');
  const now = isHit ? fault.replace('always-', '') : 'none';
  if (now === 'crash' || served.push(request.id) > Number(limit)) process.exit(3);
  if (now === 'hang') await new Promise((resolve) => setTimeout(resolve, 3_600_000));
  if (now === 'garbage') {
    console.log('Loading weights…');
    continue;
  }
  if (now === 'decline') {
    answer({ ok: false, error: 'no causal code path', unsupported: true });
    continue;
  }
  const tensors = readTensors(request.problem);
  const forward = attention(tensors, request);
  const { out, lse } = forward;
  const asked = now === 'forward' ? undefined : request.wants;
  const backward =
    asked?.includes('dq') === true ? gradients(tensors, request, forward, now !== 'delta') : [];
  if (now === 'one-percent') out.values = out.values.map((value) => value * 1.01);
  if (now === 'shape') out.shape = [out.values.length];
  if (now !== 'silent')
    writeTensors(request.output, [
      ['out', out],
      [now === 'misspelt' ? 'lsee' : 'lse', lse],
      ...(now === 'extra' ? [['row_max', lse]] : []),
      ...backward,
    ]);
  answer({ ok: true });
}
