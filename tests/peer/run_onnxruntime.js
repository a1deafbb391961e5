// Runs every case of a folder that suite.py has made: inputs.json -> outputs.json, in each.
//   NODE_PATH=FOLDER_OF_PACKAGES node run_onnxruntime.js FOLDER
const fs = require('fs');
const path = require('path');
const ort = require('onnxruntime-node');

const arrays = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, int8: Int8Array, uint8: Uint8Array,
  int16: Int16Array, uint16: Uint16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
};

function tensor({type, dims, data}) {
  if (type === 'string') return new ort.Tensor('string', data, dims);
  const bytes = Buffer.from(data, 'hex');
  const copy = new Uint8Array(bytes.length);
  copy.set(bytes);
  return new ort.Tensor(type, new arrays[type](copy.buffer), dims);
}

function dump(name, t) {
  if (t.type === 'string') return {name, type: 'string', dims: t.dims, data: Array.from(t.data)};
  const bytes = Buffer.from(t.data.buffer, t.data.byteOffset, t.data.byteLength);
  return {name, type: t.type, dims: t.dims, data: bytes.toString('hex')};
}

async function run(folder) {
  // As the model says, with nothing fused or rewritten.
  const session = await ort.InferenceSession.create(path.join(folder, 'model.onnx'), {
    graphOptimizationLevel: 'disabled', intraOpNumThreads: 1, logSeverityLevel: 4,
  });
  const feeds = {};
  for (const input of JSON.parse(fs.readFileSync(path.join(folder, 'inputs.json')))) feeds[input.name] = tensor(input);
  const results = await session.run(feeds);
  return session.outputNames.map((name) => dump(name, results[name]));
}

(async () => {
  for (const name of fs.readdirSync(process.argv[2]).sort()) {
    const folder = path.join(process.argv[2], name);
    const output = path.join(folder, 'outputs.json');
    if (fs.existsSync(output)) continue;
    // Stays if the process dies here; run again, and the rest follows.
    fs.writeFileSync(output, JSON.stringify({error: 'it crashes'}));
    let result;
    try {
      result = {outputs: await run(folder)};
    } catch (error) {
      result = {error: String(error.message)};
    }
    fs.writeFileSync(output, JSON.stringify(result));
  }
})();
