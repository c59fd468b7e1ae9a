/**
 * A kernel of linear attention behind the process protocol that shares no code with flashproof: the recurrence in fp64, token by
 * token, on bf16 and fp32 inputs, written out in fp32, without gradients. The first argument says what it does wrong: crash,
 * decline, misspelt (a final_stat in place of the final state), misshapen (its first two axes exchanged), no-decay (gates are left out),
 * no-skip (D x of mamba2 is left out), lost-chunk (what tokens 64 to 127 of a sequence write is lost behind them), no-state (no final state). `none` does nothing wrong.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , fault = 'none'] = process.argv;

function readTensors(path) {
  const file = readFileSync(path);
  const headerBytes = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerBytes).toString());
  const widths = { BF16: 2, F32: 4, I32: 4 };
  const elements = {
    BF16: (at) => new Float32Array(new Uint32Array([file.readUInt16LE(at) << 16]).buffer)[0],
    F32: (at) => file.readFloatLE(at),
    I32: (at) => file.readInt32LE(at),
  };
  const named = Object.entries(header).filter(([name]) => name !== '__metadata__');
  const tensors = named.map(([name, { dtype, shape, data_offsets: offsets }]) => {
    const [begin, end] = offsets.map((offset) => 8 + headerBytes + offset);
    const values = [];
    for (let at = begin; at < end; at += widths[dtype]) values.push(elements[dtype](at));
    return [name, { shape, values }];
  });
  return { tensors: Object.fromEntries(tensors), metadata: header.__metadata__ };
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

/** The decay of a key dimension at a token and head. */
function decayOf({ family, g, heads, keyDim }, token, head, i) {
  if (family === 'retention') return 1 - 2 ** (-5 - head);
  if (g === undefined || fault === 'no-decay') return 1;
  const isByKey = g.shape.length === 4;
  return Math.exp(g.values[(token * heads + head) * (isByKey ? keyDim : 1) + (isByKey ? i : 0)]);
}

function normalised(row, epsilon) {
  if (epsilon === null) return row;
  const length = Math.sqrt(row.reduce((sum, x) => sum + x * x, 0) + epsilon);
  return row.map((x) => x / length);
}

function recurrence({ q, k, v, g, beta, initial_state: initial, cu_seqlens: ends }, request) {
  const { family, scale, normalisation } = request;
  const [batch, tokens, keyHeads, keyDim] = q.shape;
  const [, , heads, valueDim] = v.shape;
  const sequences =
    ends === undefined
      ? Array.from({ length: batch }, (_, i) => [i * tokens, (i + 1) * tokens])
      : ends.values.slice(1).map((end, i) => [ends.values[i], end]);
  const out = new Array(batch * tokens * heads * valueDim).fill(0);
  const final = [];
  const row = ({ values }, token, head, count, width) => {
    const at = (token * count + head) * width;
    return values.slice(at, at + width);
  };
  for (const [index, [first, end]] of sequences.entries())
    for (let head = 0; head < heads; head++) {
      const keyHead = Math.floor(head / (heads / keyHeads));
      const size = keyDim * valueDim;
      const at = (index * heads + head) * size;
      const state = initial?.values.slice(at, at + size) ?? new Array(size).fill(0);
      let kept = state.slice();
      for (let token = first; token < end; token++) {
        if (token - first === 64) kept = state.slice();
        if (fault === 'lost-chunk' && token - first === 128) state.splice(0, size, ...kept);
        const key = normalised(row(k, token, keyHead, keyHeads, keyDim), normalisation);
        const query = normalised(row(q, token, keyHead, keyHeads, keyDim), normalisation);
        const value = row(v, token, head, heads, valueDim);
        const strength = beta === undefined ? 1 : beta.values[token * heads + head];
        for (let i = 0; i < keyDim; i++)
          for (let j = 0; j < valueDim; j++)
            state[i * valueDim + j] *= decayOf({ family, g, heads, keyDim }, token, head, i);
        for (let j = 0; j < valueDim; j++) {
          const held = key.reduce((sum, x, i) => sum + x * state[i * valueDim + j], 0);
          const written = strength * (value[j] - (beta === undefined ? 0 : held));
          for (let i = 0; i < keyDim; i++) state[i * valueDim + j] += key[i] * written;
          const read = query.reduce((sum, x, i) => sum + x * state[i * valueDim + j], 0);
          out[(token * heads + head) * valueDim + j] = scale * read;
        }
      }
      final.push(...state);
    }
  return {
    out: { shape: v.shape, values: out },
    final_state: { shape: [sequences.length, heads, keyDim, valueDim], values: final },
  };
}

/** States [sequences, heads, a, b] as [sequences, heads, b, a]. */
function turned({ shape: [sequences, heads, a, b], values }) {
  const at = (state, i, j) => values[(state * a + j) * b + i];
  const states = Array.from({ length: sequences * heads }, (_, state) =>
    Array.from({ length: b }, (_, i) => Array.from({ length: a }, (_, j) => at(state, i, j))),
  );
  return { shape: [sequences, heads, b, a], values: states.flat(3) };
}

/** The steps of mamba2, by token and head. */
function stepsOf({ dt, dt_bias: bias }, { dt_softplus: softplus, dt_limit: [least, most] }, heads) {
  return dt.values.map((x, i) => {
    const sum = x + (bias?.values[i % heads] ?? 0);
    const step = softplus ? Math.log1p(Math.exp(sum)) : sum;
    return Math.min(most ?? Infinity, Math.max(least, Number.isFinite(step) ? step : sum));
  });
}

/** Mamba-2 by the names of mamba_ssm: the recurrence of Δ x with gates Δ A, and D x and the gate behind it. */
function mamba2(tensors, request) {
  const { C, B, x, A, D, z, initial_states: initial, cu_seqlens: ends } = tensors;
  const [, , heads, headDim] = x.shape;
  const steps = stepsOf(tensors, request, heads);
  const ofRow = (i) => Math.floor(i / headDim);
  const problem = {
    q: C,
    k: B,
    v: { shape: x.shape, values: x.values.map((one, i) => one * steps[ofRow(i)]) },
    g: { shape: [1, 1, heads], values: steps.map((step, i) => step * A.values[i % heads]) },
    initial_state: initial && turned(initial),
    cu_seqlens: ends,
  };
  const { out, final_state: final } = recurrence(problem, request);
  const values = out.values.map((y, i) => {
    const skip = fault === 'no-skip' ? 0 : (D?.values[ofRow(i) % heads] ?? 0) * x.values[i];
    const gate = z === undefined ? 1 : z.values[i] / (1 + Math.exp(-z.values[i]));
    return (y + skip) * gate;
  });
  return { out: { shape: x.shape, values }, final_state: turned(final) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = (fields) => console.log(JSON.stringify({ id: request.id, ...fields }));
  if (request.contract !== 'recurrent') {
    answer({ ok: false, error: `contract ${request.contract}`, unsupported: true });
    continue;
  }
  if (fault === 'crash') process.exit(3);
  if (fault === 'decline') {
    answer({ ok: false, error: 'no such shape', unsupported: true });
    continue;
  }
  const { tensors, metadata } = readTensors(request.problem);
  const noted = [metadata.family, Number(metadata.scale), metadata.normalisation];
  const said = [request.family, request.scale, String(request.normalisation ?? 'none')];
  if (noted.some((note, i) => note !== said[i])) {
    answer({ ok: false, error: 'the file says otherwise than the request' });
    continue;
  }
  const isMamba2 = request.family === 'mamba2';
  const { out, final_state: final } = (isMamba2 ? mamba2 : recurrence)(tensors, request);
  if (fault === 'misshapen') {
    const [sequences, heads, ...dims] = final.shape;
    final.shape = [heads, sequences, ...dims];
  }
  const right = isMamba2 ? 'final_states' : 'final_state';
  const named = fault === 'misspelt' ? 'final_stat' : right;
  writeTensors(request.output, [
    ['out', out],
    ...(request.wants.includes(right) && fault !== 'no-state' ? [[named, final]] : []),
  ]);
  answer({ ok: true });
}
