#include <heed/models/model.h>

#include <iostream>

int main() {
  const heed::Json config = {{"architectures", {"BertForSequenceClassification"}},
                             {"model_type", "bert"},
                             {"hidden_size", 16},
                             {"num_hidden_layers", 1},
                             {"num_attention_heads", 2},
                             {"intermediate_size", 32},
                             {"vocab_size", 50},
                             {"num_labels", 3}};
  const heed::Model model = heed::make_model(config);
  const heed::Tensor ids = heed::Tensor::from(std::vector<int64_t>{1, 2, 3, 4}, {2, 2}, heed::kCpu);
  std::cout << "logits " << model({{"input_ids", ids}}).at("logits").shape() << '\n';
}
