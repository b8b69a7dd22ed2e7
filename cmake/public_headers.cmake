# The headers that are installed, by module: what programs may include, and what those headers include. A test checks that the list is closed.
set(heed_headers_of_core
  api.h autograd.h check.h copy.h device.h dry_run.h dtype.h interrupt.h isa.h kernel.h memory.h parallel.h philox.h random.h raw.h
  shape.h tensor.h work_count.h)
set(heed_headers_of_cuda driver.h runtime.h)
set(heed_headers_of_ops activation.h elementwise.h ops.h packed_weight.h)
set(heed_headers_of_attention
  attention.h cache.h channel_attention.h linear_attention.h linear_attention_kernels.h pooled_keys.h probabilities.h score_block.h tap.h
  term.h term_files.h term_info.h term_list.h terms.h terms/*.h)
set(heed_headers_of_io
  file.h image.h image_files.h json.h json_reader.h resize.h safetensors.h utf8.h)
set(heed_headers_of_text
  aligned.h batches.h char_set.h model.h string_table.h tokenizer.h train_vocabulary.h unicode.h vocabulary.h)
set(heed_headers_of_data
  augment.h idx.h image_data.h shapes.h synthetic_documents.h synthetic_text.h text_data.h)
set(heed_headers_of_nn
  decoder.h encoder.h feed_forward.h initializer.h linear.h mode.h multi_head.h params.h patches.h pooling.h position_table.h
  positions.h)
set(heed_headers_of_models
  classify.h cost.h embed.h generate.h image_processor.h inspect.h model.h sample.h text_model.h translate.h)
set(heed_headers_of_train
  evaluate.h event_file.h optimizer.h optimizer_step.h presets.h report.h run_folder.h settings.h task.h tasks.h train_options.h
  trainer.h training_job.h)
