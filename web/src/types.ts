// What the server answers: the schemas of heed/serve/openapi.json that this page uses.
export interface ModelInfo {
  id: string;
  folder: string;
  architecture: string;
  task: 'generate' | 'translate' | 'classify' | 'tag' | 'fill' | 'embed';
  input: 'text' | 'image';
  embeddings: boolean;
  chat: boolean;
  loaded: boolean;
  parameters: number;
  layers: number;
  heads: number;
  max_tokens: number;
  maps: boolean;
  error?: string;
}
export interface Info {
  version: string;
  device: string;
  isa: string;
  threads: number;
  runs: string | null;
  can_train: boolean;
  models: ModelInfo[];
  presets: { name: string; summary: string; family: string }[];
}

export interface Label {
  label: string;
  id: number;
  score: number;
}
export interface Prediction {
  about: string;
  token: number | null;
  probabilities: boolean;
  labels: Label[];
}
export interface AttentionMaps {
  kind: 'attention' | 'encoder' | 'decoder' | 'cross';
  queries: string[];
  keys: string[];
  rows: number[];
  layers: number[];
  heads: number[];
  weights: number[][][][]; // (layers, heads, rows, keys)
}
export type TermName = 'content_content' | 'content_position' | 'position_content' | 'position_position';
export interface HeadTerms {
  layer: number;
  head: number;
  shares: Record<TermName, number>;
  terms: Record<TermName, number[][]>; // (rows, keys)
  scores: number[][]; // their sum
  weights: number[][];
}
export interface ScoreTerms {
  kind: AttentionMaps['kind'];
  queries: string[];
  keys: string[];
  rows: number[];
  heads: HeadTerms[];
}
export interface Inspection {
  model: string;
  architecture: string;
  kind: 'text' | 'image' | 'translation';
  tokens: { id: number; text: string }[];
  target_tokens?: { id: number; text: string }[];
  translation?: string;
  own_translation?: boolean;
  predictions: Prediction[];
  before?: Prediction[];
  maps: AttentionMaps[];
  rollout: number[];
  image?: { data: string; width: number; height: number; rows: number; columns: number; first: number };
  shapes?: { name: string; shape: number[]; dtype: string }[];
  terms?: ScoreTerms[]; // one for each of maps
  milliseconds: number;
}

export interface Classified {
  task: 'classify' | 'tag' | 'fill';
  results: {
    labels?: Label[];
    words?: { text: string; begin: number; end: number; label: string; score: number }[];
    masks?: { begin: number; end: number; labels: Label[] }[];
  }[];
}
export interface Translated {
  results: { text: string; tokens: string[]; score?: number }[];
}
export interface Embeddings {
  data: { index: number; embedding: number[] }[];
}

export interface Term {
  name: string;
  summary: string;
  source: string;
  struct: string;
  file: string;
  masks: boolean;
  needs_grid: boolean;
  needs_content: boolean;
  in_attend: boolean;
  settings: { name: string; meaning: string; type: 'whole' | 'number' | 'flag'; least: number; default: number }[];
  parameters: { name: string; file_name: string; meaning: string; shape: string; learned: boolean; default: Nested[] }[];
}
export type Nested = number | Nested[];
export interface TermChoice {
  name: string;
  settings?: Record<string, number>;
  parameters?: Record<string, Nested>;
}
export interface Attended {
  tokens: number;
  grid: number[] | null;
  heads: number;
  beta: number;
  probabilities: number[][][];
  scores?: number[][][];
  terms: { name: string; settings: Record<string, number>; parameters: Record<string, Nested> }[];
  gradients?: { loss: number; scores: number[][][]; beta: number[]; terms: Record<string, Nested>[] };
  command: string;
  milliseconds: number;
}

export interface RunSummary {
  id: string;
  task: string;
  name: string;
  data: string;
  model: string;
  state: 'running' | 'finished' | 'stopped' | 'interrupted' | 'diverged' | 'failed';
  epochs: number;
  planned: number;
  metric: string;
  best_epoch: number;
  best: number | null;
  seconds: number;
  judged: string;
  figures: Record<string, number>;
}
export interface RunRow {
  epoch: number;
  step: number;
  figures: Record<string, number | null>;
}
export interface Sample {
  truth: string;
  guess: string;
  score: number | null;
  right: boolean;
  source?: string;
  image?: string; // base64 PNG
  rows?: string[];
  columns?: string[];
  map?: number[];
  map_rows?: number;
  map_columns?: number;
}
export interface HeadFrame {
  epoch: number;
  step: number;
  grid: [number, number];
  layers: { name: string; heads: { center: [number, number]; contour_50: [number, number, number] | null }[] }[];
}
export interface Run {
  summary: RunSummary;
  settings: { key: string; value: string; group: string; meaning: string; given: boolean | null }[];
  epochs: RunRow[];
  steps: RunRow[];
  speed: RunRow[];
  samples: Sample[];
  classes: string[];
  confusion: number[][] | null;
  heads: HeadFrame[];
  log: string[];
  model_folder: string | null;
  cursor: string;
}
export interface Setting {
  key: string;
  heading?: string;
  type: 'string' | 'integer' | 'number' | 'boolean' | 'path' | 'list' | 'any';
  default: string | number | boolean | null;
  help: string;
  choices: string[];
  least?: number | null;
  most?: number | null;
  with_settings?: boolean;
}
export interface SettingList {
  tasks: { name: string; summary: string; preset: string; presets: string[]; examples: string[] }[];
  task: string;
  settings: Setting[];
}

export type Verdict = 'holds' | 'corrected' | 'fails';
export interface Experiment {
  number: string;
  name: string;
  topic: string;
  title: string;
  claim: string;
  formula: string;
  published?: string;
  expected: Verdict;
  settings: Setting[];
}
export interface PlotAxis {
  name: string;
  log: boolean;
  least: number | null;
  most: number | null;
}
export interface Plot {
  title: string;
  kind: 'lines' | 'heat_map' | 'bars' | 'image';
  x?: PlotAxis;
  y?: PlotAxis;
  series?: { name: string; x: Maybe[]; y: Maybe[]; mark: 'line' | 'dashed' | 'points' | 'both'; low: Maybe[]; high: Maybe[] }[];
  rows?: number;
  columns?: number;
  values?: Maybe[];
  down?: string;
  across?: string;
  least?: number | null;
  most?: number | null;
  diverging?: boolean;
  under?: string;
  groups?: string[];
  sets?: { name: string; values: Maybe[]; low: Maybe[]; high: Maybe[] }[];
  image?: string;
}
type Maybe = number | null;
export interface LabResult {
  name: string;
  claim: string;
  published?: string;
  statement: string;
  verdict: Verdict;
  expected: Verdict;
  as_documented: boolean;
  settings: Record<string, unknown>;
  seconds: number;
  error?: string;
  measured: {
    name: string;
    predicted: Maybe;
    measured: Maybe;
    prediction: string;
    by_clock: boolean;
    contradicts: boolean;
    passes: boolean;
  }[];
  tables: { title: string; columns: string[]; rows: (string | number | null)[][] }[];
  figures: { title: string; caption: string; parameter: string; frames: { value: string; plots: Plot[] }[] }[];
}

export interface CallCost {
  multiply_adds: number;
  moved_bytes: number;
  memory_bytes: number;
  memory: Record<string, number>;
  measured?: Record<string, unknown>;
}
export interface Module {
  name: string;
  parameters: number;
  bytes: number;
  multiply_adds: number;
  moved_bytes: number;
  activation_bytes: number;
  training_multiply_adds: number;
  training_moved_bytes: number;
}
export interface Cost {
  model: string;
  architecture: string;
  parameters: number;
  learned: number;
  size: Record<string, number>;
  inference: CallCost;
  training?: CallCost;
  cache_bytes_per_token: number;
  modules: Module[];
  machine?: Record<string, unknown>;
}
