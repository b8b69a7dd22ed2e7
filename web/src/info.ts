// What the server has: models, presets, machine. Loaded once, shared by all views.
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { Loaded } from './api';
import { Info, ModelInfo } from './types';

export const InfoContext = createContext<Loaded<Info>>({ loading: true, reload: () => {} });
export const useInfo = () => useContext(InfoContext);

// The chosen model if it can do what is asked, else the first that can.
export function pickModel(info: Info | undefined, chosen: string, can: (model: ModelInfo) => boolean) {
  const models = (info?.models ?? []).filter(model => !model.error && can(model));
  return { models, model: models.find(model => model.id === chosen) ?? models[0] };
}
